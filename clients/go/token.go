package polynym

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

const (
	// tokenCheckInterval is the shortest time between two checks of a token file.
	tokenCheckInterval = time.Second
	maxTokenBytes      = 4096
)

// bearer sends a token with each attempt of each call. It implements credentials.PerRPCCredentials.
type bearer struct {
	token  func() string
	secure bool
}

func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + b.token()}, nil
}

func (b bearer) RequireTransportSecurity() bool { return b.secure }

// tokenFile is a token in a file that is read again when the file changes.
type tokenFile struct {
	path string

	mutex   sync.Mutex
	token   string
	info    os.FileInfo
	checked time.Time
}

func openTokenFile(path string) (*tokenFile, error) {
	file := &tokenFile{path: path, checked: time.Now()}
	if err := file.reload(); err != nil {
		return nil, err
	}
	return file, nil
}

// current returns the token of the file, or the previous one if the file cannot be read.
func (f *tokenFile) current() string {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if now := time.Now(); now.Sub(f.checked) >= tokenCheckInterval {
		f.checked = now
		_ = f.reload() // The previous token stays.
	}
	return f.token
}

func (f *tokenFile) reload() error {
	info, err := os.Stat(f.path)
	if err != nil {
		return fmt.Errorf("polynym: token file: %w", err)
	}
	if f.info != nil && os.SameFile(info, f.info) &&
		info.ModTime().Equal(f.info.ModTime()) && info.Size() == f.info.Size() {
		return nil
	}
	if info.Size() > maxTokenBytes {
		return fmt.Errorf("polynym: token file %s: exceeds %d bytes", f.path, maxTokenBytes)
	}
	content, err := os.ReadFile(f.path)
	if err != nil {
		return fmt.Errorf("polynym: token file: %w", err)
	}
	token := strings.TrimSpace(string(content))
	if err := checkToken(token); err != nil {
		return fmt.Errorf("polynym: token file %s: %w", f.path, err)
	}
	f.token, f.info = token, info
	return nil
}

// checkToken rejects what cannot be sent in a header.
func checkToken(token string) error {
	if token == "" {
		return errors.New("the token is empty")
	}
	for _, char := range []byte(token) {
		if char <= ' ' || char > '~' {
			return errors.New("the token has characters other than visible ASCII")
		}
	}
	return nil
}
