package polynymtest

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/polynym/polynym/clients/go"
)

func TestAServerOfATest(t *testing.T) {
	client := Connect(t, polynym.WithTimeout(time.Minute))
	_, err := client.Resolve(t.Context(), polynym.Handle("joe"))
	if !errors.Is(err, polynym.ErrNotFound) {
		t.Error(err)
	}
}

func TestAServerAnswersHTTP(t *testing.T) {
	server := Start(t)
	method := "/polynym.v1.DirectoryService/NormalizeIdentity"
	request := strings.NewReader(`{"identifier":{"email":"Joe@Example.com"}}`)
	response, err := http.Post("http://"+server.HTTPAddress+method, "application/json", request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || !strings.Contains(string(body), "joe@example.com") {
		t.Errorf("%s, %v", body, err)
	}
}

func TestAServerEndsWithItsProgram(t *testing.T) {
	server := Start(t)
	_ = server.input.Close() // As the end of this program does.
	select {
	case <-server.exited:
	case <-time.After(stopTimeout):
		t.Error("the server still runs")
	}
}

func TestFaultsOfTheStart(t *testing.T) {
	_, err := Launch(WithArguments("--no-such-option"))
	if err == nil || !strings.Contains(err.Error(), "--no-such-option") {
		t.Errorf("the error does not name the option: %v", err)
	}
	if _, err := Launch(WithProgram("/no/such/program")); err == nil {
		t.Error("a program that does not exist has started")
	}
	t.Setenv("POLYNYM_BIN", "")
	t.Setenv("PATH", t.TempDir())
	if _, err := Launch(); err == nil || !strings.Contains(err.Error(), "POLYNYM_BIN") {
		t.Errorf("the error does not name the variable: %v", err)
	}
}
