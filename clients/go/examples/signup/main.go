// Command signup signs users up by their email addresses, and looks them up.
package main

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/polynym/polynym/clients/go"
	"github.com/polynym/polynym/clients/go/polynymv1"
)

func main() {
	err := serve()
	slog.Error("the service has ended", "error", err, "cause", errors.Unwrap(err))
	os.Exit(1)
}

func serve() error {
	client, err := polynym.Dial(context.Background(), "")
	if err != nil {
		return err
	}
	defer client.Close()
	return http.ListenAndServe("127.0.0.1:8080", newHandler(client))
}

func newHandler(client *polynym.Client) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /users", func(w http.ResponseWriter, r *http.Request) {
		wanted := &polynymv1.User{DisplayName: r.FormValue("name")}
		user, created, err := client.GetOrCreate(r.Context(), polynym.Email(r.FormValue("email")), wanted)
		status := http.StatusOK
		if created {
			status = http.StatusCreated
		}
		answer(w, status, user, err)
	})
	mux.HandleFunc("GET /users/{email}", func(w http.ResponseWriter, r *http.Request) {
		found, err := client.Resolve(r.Context(), polynym.Email(r.PathValue("email")))
		answer(w, http.StatusOK, found.GetUser(), err)
	})
	return mux
}

func answer(w http.ResponseWriter, status int, user *polynymv1.User, err error) {
	if err == nil {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(protojson.Format(user)))
		return
	}
	switch {
	case errors.Is(err, polynym.ErrInvalidArgument):
		status = http.StatusBadRequest
	case errors.Is(err, polynym.ErrNotFound):
		status = http.StatusNotFound
	default:
		status = http.StatusServiceUnavailable
	}
	slog.Warn("a call has failed", "status", status, "error", err)
	http.Error(w, http.StatusText(status), status)
}
