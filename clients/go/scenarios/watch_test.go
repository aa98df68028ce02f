package scenarios_test

import (
	"context"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/polynym/polynym/clients/go"
	"github.com/polynym/polynym/clients/go/polynymv1"
)

// runningWatch is a watch in the background.
type runningWatch struct {
	cancel  context.CancelFunc
	begun   chan *result // Its first response, or its error.
	results chan result
}

// startWatch starts a watch, and returns after its first response.
func (p *puppet) startWatch(step *step) (*result, error) {
	request := new(polynymv1.WatchRequest)
	if err := proto.Unmarshal(step.Request, request); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.watch = &runningWatch{
		cancel: cancel, begun: make(chan *result, 1), results: make(chan result, 10_000)}
	go p.watch.run(ctx, p.client, request)
	return <-p.watch.begun, nil
}

func (w *runningWatch) run(ctx context.Context, client *polynym.Client, request *polynymv1.WatchRequest) {
	defer close(w.results)
	begun := false
	for response, err := range client.Watch(ctx, request) {
		var failed *result
		if err != nil {
			outcome := resultOf(nil, err)
			failed = &outcome
			w.results <- outcome
		} else if event := response.GetEvent(); event != nil {
			w.results <- resultOf(event, nil)
		}
		if !begun {
			begun = true
			w.begun <- failed
		}
	}
}

// wait stops the watch once it has had a number of events, or its time is over.
func (w *runningWatch) wait(count int, timeout time.Duration) []result {
	defer w.cancel()
	results := []result{}
	expired := time.After(timeout)
	for len(results) < count {
		select {
		case result, more := <-w.results:
			if !more {
				return results
			}
			results = append(results, result)
		case <-expired:
			return results
		}
	}
	return results
}
