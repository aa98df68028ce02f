package polynymtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// launchInFolder starts a server that does not know --ephemeral, on a store in a temporary folder.
func launchInFolder(s settings) (*Server, error) {
	folder, err := os.MkdirTemp("", "polynymtest")
	if err != nil {
		return nil, fmt.Errorf("polynymtest: %w", err)
	}
	store := "embedded:" + filepath.Join(folder, "store")
	arguments := []string{"serve", "--create", "--store", store, "--listen", "127.0.0.1:0"}
	server, err := launch(exec.Command(s.program, append(arguments, s.arguments...)...))
	if err != nil {
		_ = os.RemoveAll(folder)
		return nil, err
	}
	server.folder = folder
	return server, nil
}
