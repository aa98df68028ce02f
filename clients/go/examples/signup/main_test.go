package main

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/polynym/polynym/clients/go"
	"github.com/polynym/polynym/clients/go/polynymtest"
)

func TestMain(m *testing.M) {
	if os.Getenv("SIGNUP") != "" {
		main()
	}
	os.Exit(m.Run())
}

// TestAFailureIsAnExitCode runs the service with a server on whose port nothing listens.
func TestAFailureIsAnExitCode(t *testing.T) {
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), "SIGNUP=1", "POLYNYM_SERVER=127.0.0.1:1")
	output, err := command.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("%v", err)
	}
	for _, text := range []string{"the server 127.0.0.1:1 cannot be reached", "connection refused"} {
		if !strings.Contains(string(output), text) {
			t.Errorf("%s", output)
		}
	}
}

func TestSignUp(t *testing.T) {
	client := polynymtest.Connect(t, polynym.WithTimeout(time.Minute))
	service := httptest.NewServer(newHandler(client))
	defer service.Close()
	check := func(response *http.Response, err error, status int, text string) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil || response.StatusCode != status || !strings.Contains(string(body), text) {
			t.Errorf("%d %s, %v", response.StatusCode, body, err)
		}
	}
	users := service.URL + "/users"
	joe := url.Values{"email": {"Joe@Example.com"}, "name": {"Joe Smith"}}
	for _, status := range []int{http.StatusCreated, http.StatusOK} {
		response, err := http.PostForm(users, joe)
		check(response, err, status, "Joe Smith")
	}
	response, err := http.Get(users + "/joe@example.com")
	check(response, err, http.StatusOK, "Joe Smith")
	response, err = http.Get(users + "/nobody@example.com")
	check(response, err, http.StatusNotFound, "Not Found")
	response, err = http.Get(users + "/nonsense")
	check(response, err, http.StatusBadRequest, "Bad Request")
	_ = client.Close()
	response, err = http.Get(users + "/joe@example.com")
	check(response, err, http.StatusServiceUnavailable, "Service Unavailable")
}
