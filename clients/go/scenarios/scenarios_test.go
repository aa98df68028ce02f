package scenarios_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/polynym/polynym/clients/go"
	"github.com/polynym/polynym/clients/go/polynymv1"
)

// TestScenarios runs the scenarios of all clients: the testbed starts a server and a proxy with
// faults, says what to call, and checks every answer.
func TestScenarios(t *testing.T) {
	program := testbed()
	if program == "" {
		t.Skip("no testbed: build it with `cargo build -p client-testbed`, or set POLYNYM_TESTBED")
	}
	command := exec.Command(program)
	faults := new(strings.Builder)
	command.Stderr = faults
	answers, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	steps, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	puppet := &puppet{}
	lines := bufio.NewScanner(steps)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		answer, err := puppet.take(lines.Bytes())
		if err == nil {
			_, err = fmt.Fprintf(answers, "%s\n", answer)
		}
		if err != nil {
			_ = command.Process.Kill()
			t.Errorf("%.200s: %v", lines.Text(), err)
			break
		}
	}
	_ = answers.Close()
	if err := command.Wait(); err != nil {
		t.Errorf("%v\n%s", err, faults)
	}
	puppet.close()
	t.Logf("%s", faults)
}

// testbed is the path of the testbed, or empty.
func testbed() string {
	if path := os.Getenv("POLYNYM_TESTBED"); path != "" {
		return path
	}
	for _, profile := range []string{"debug", "release"} {
		path := "../../../target/" + profile + "/client-testbed"
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return ""
}

// puppet does what the testbed says.
type puppet struct {
	client *polynym.Client
	watch  *runningWatch
	kept   *keptResolving
}

// step is a line of the testbed.
type step struct {
	ID        int      `json:"id"`
	Op        string   `json:"op"`
	Server    string   `json:"server"`
	Token     string   `json:"token"`
	Tenant    string   `json:"tenant"`
	Batching  *bool    `json:"batching"`
	Service   string   `json:"service"`
	Method    string   `json:"method"`
	Request   []byte   `json:"request"`
	Requests  [][]byte `json:"requests"`
	Count     int      `json:"count"`
	TimeoutMS int      `json:"timeout_ms"`
	Timeouts  []int    `json:"timeouts_ms"`

	Concurrency int `json:"concurrency"`
}

// timeout is that of the step, or of one of its requests. Zero if there is none.
func (s *step) timeout(i int) time.Duration {
	if i < len(s.Timeouts) {
		return time.Duration(s.Timeouts[i]) * time.Millisecond
	}
	return time.Duration(s.TimeoutMS) * time.Millisecond
}

// answer is what the testbed gets.
type answer struct {
	ID      int      `json:"id"`
	Results []result `json:"results,omitzero"`
	*result
	*keptAnswer
}

type result struct {
	OK      *[]byte      `json:"ok,omitempty"`
	Created bool         `json:"created,omitempty"`
	Error   *resultError `json:"error,omitempty"`
}

type resultError struct {
	Type         string `json:"type"`
	Code         string `json:"code"`
	Reason       string `json:"reason,omitempty"`
	Field        string `json:"field,omitempty"`
	RetryAfterMS int64  `json:"retry_after_ms,omitempty"`
	Owner        string `json:"owner,omitempty"`
	RequestID    string `json:"request_id,omitempty"`
}

func resultOf(response proto.Message, err error) result {
	var unknown *polynym.OutcomeUnknownError
	var failed *polynym.Error
	if errors.As(err, &failed) {
		name := code.Code(failed.Code).String()
		described := &resultError{
			Type: name, Code: name, Reason: failed.Reason, Field: failed.Field,
			RetryAfterMS: failed.RetryAfter.Milliseconds(), Owner: failed.Owner, RequestID: failed.RequestID,
		}
		if errors.As(err, &unknown) {
			described.Type, described.RequestID = "OUTCOME_UNKNOWN", unknown.RequestID
		}
		if errors.Is(err, polynym.ErrClosed) {
			described.Type = "CLOSED"
		}
		return result{Error: described}
	}
	if err != nil {
		return result{Error: &resultError{Type: err.Error()}}
	}
	encoded, err := proto.MarshalOptions{Deterministic: true}.Marshal(response)
	if err != nil {
		return result{Error: &resultError{Type: err.Error()}}
	}
	return result{OK: &encoded}
}

func (p *puppet) take(line []byte) ([]byte, error) {
	var step step
	if err := json.Unmarshal(line, &step); err != nil {
		return nil, err
	}
	answer := answer{ID: step.ID}
	if step.Op == "kept" {
		answer.keptAnswer = p.kept.stop()
		return json.Marshal(answer)
	}
	one, many, err := p.act(&step)
	if err != nil {
		return nil, err
	}
	answer.result, answer.Results = one, many
	return json.Marshal(answer)
}

// act returns one result or several.
func (p *puppet) act(step *step) (*result, []result, error) {
	ctx := context.Background()
	if timeout := step.timeout(0); timeout > 0 && step.Op == "call" {
		limited, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		ctx = limited
	}
	switch step.Op {
	case "connect":
		return nil, nil, p.connect(step)
	case "call":
		one, err := p.call(ctx, step)
		return &one, nil, err
	case "resolve":
		one, err := p.resolve(ctx, step.Request, step.timeout(0))
		return &one, nil, err
	case "resolve_concurrently":
		many, err := p.resolveConcurrently(ctx, step)
		return nil, many, err
	case "keep_resolving":
		return nil, nil, p.keepResolving(step)
	case "close":
		return nil, nil, p.client.Close()
	case "get_or_create":
		many, err := p.getOrCreate(ctx, step)
		return nil, many, err
	case "resolve_many":
		many, err := p.resolveMany(ctx, step)
		return nil, many, err
	case "search":
		request := new(polynymv1.SearchUsersRequest)
		err := proto.Unmarshal(step.Request, request)
		return nil, collect(p.client.Search(ctx, request)), err
	case "history":
		request := new(polynymv1.ListHistoryRequest)
		err := proto.Unmarshal(step.Request, request)
		return nil, collect(p.client.History(ctx, request)), err
	case "watch":
		one, err := p.startWatch(step)
		return one, nil, err
	case "watched":
		return nil, p.watch.wait(step.Count, step.timeout(0)), nil
	default:
		return nil, nil, fmt.Errorf("the puppet does not know %q", step.Op)
	}
}

func (p *puppet) connect(step *step) error {
	p.close()
	options := []polynym.Option{polynym.WithTenant(step.Tenant)}
	if step.Token != "" {
		options = append(options, polynym.WithToken(step.Token))
	}
	if timeout := step.timeout(0); timeout > 0 {
		options = append(options, polynym.WithTimeout(timeout))
	}
	if step.Batching != nil {
		options = append(options, polynym.WithBatching(*step.Batching))
	}
	var err error
	p.client, err = polynym.Connect(step.Server, options...)
	return err
}

func (p *puppet) close() {
	if p.watch != nil {
		p.watch.cancel()
		p.watch = nil
	}
	if p.client != nil {
		_ = p.client.Close()
	}
}

// call calls any unary method by its descriptor.
func (p *puppet) call(ctx context.Context, step *step) (result, error) {
	name := "polynym.v1." + step.Service + "." + step.Method
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(name))
	if err != nil {
		return result{}, err
	}
	method := found.(protoreflect.MethodDescriptor)
	request, err := newMessage(method.Input())
	if err != nil {
		return result{}, err
	}
	response, err := newMessage(method.Output())
	if err != nil {
		return result{}, err
	}
	if err := proto.Unmarshal(step.Request, request); err != nil {
		return result{}, err
	}
	path := "/polynym.v1." + step.Service + "/" + step.Method
	return resultOf(response, p.client.Connection().Invoke(ctx, path, request, response)), nil
}

func newMessage(descriptor protoreflect.MessageDescriptor) (proto.Message, error) {
	found, err := protoregistry.GlobalTypes.FindMessageByName(descriptor.FullName())
	if err != nil {
		return nil, err
	}
	return found.New().Interface(), nil
}
