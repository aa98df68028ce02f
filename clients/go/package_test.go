package polynym_test

import (
	"archive/zip"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/polynym/polynym/clients/go"
)

const (
	modulePath = "github.com/polynym/polynym/clients/go"
	release    = "v" + polynym.Version
)

// userProgram is that of an empty module which requires this one.
const userProgram = `package main

import (
	"context"
	"fmt"
	"os"

	"github.com/polynym/polynym/clients/go"
	"github.com/polynym/polynym/clients/go/polynymv1"
)

func main() {
	client, err := polynym.Connect(os.Args[1])
	if err == nil {
		defer client.Close()
		user := &polynymv1.User{DisplayName: "Installed"}
		user, _, err = client.GetOrCreate(context.Background(), polynym.Handle("installed"), user)
		fmt.Println(user.GetDisplayName(), polynym.Version, err)
	}
}
`

// TestTheModuleInstalls packs the module as a proxy serves it, and calls a server from another
// module that has it from there. Its dependencies are those of the cache, or of the proxies.
func TestTheModuleInstalls(t *testing.T) {
	module := newModule(t)
	pack(t, filepath.Join(module.proxy, modulePath, "@v"))
	module.run(t, "go", "mod", "edit", "-require", modulePath+"@"+release)
	module.buildAndCall(t)
}

// TestTheModuleIsUsedFromACheckout does as README.md says.
func TestTheModuleIsUsedFromACheckout(t *testing.T) {
	module := newModule(t)
	checkout, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	line := "go mod edit -replace " + modulePath + "="
	if page := readProject(t, "clients/go/README.md"); !strings.Contains(page, line) {
		t.Errorf("README.md does not have %s", line)
	}
	module.run(t, "go", "mod", "edit", "-replace", modulePath+"="+checkout)
	module.run(t, "go", "mod", "tidy")
	module.buildAndCall(t)
}

// module is an empty module with the user's program.
type module struct{ folder, proxy, cache, proxies string }

func newModule(t *testing.T) module {
	t.Helper()
	settings, err := exec.Command("go", "env", "GOMODCACHE", "GOPROXY").Output()
	if err != nil {
		t.Skip("there is no go on the PATH")
	}
	cache, proxies, _ := strings.Cut(strings.TrimSpace(string(settings)), "\n")
	folder := t.TempDir()
	created := module{folder, filepath.Join(folder, "proxy"), cache, proxies}
	writeNew(t, filepath.Join(folder, "program", "main.go"), userProgram)
	created.run(t, "go", "mod", "init", "program")
	return created
}

func (m module) run(t *testing.T, name string, arguments ...string) string {
	t.Helper()
	command := exec.Command(name, arguments...)
	command.Dir = filepath.Join(m.folder, "program")
	command.Env = append(os.Environ(),
		"GOFLAGS=-mod=mod -modcacherw -trimpath", "GOSUMDB=off", "GOWORK=off",
		"GOPROXY=file://"+m.proxy+",file://"+m.cache+"/cache/download,"+m.proxies,
		"GOMODCACHE="+filepath.Join(m.folder, "cache"))
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, output)
	}
	return string(output)
}

func (m module) buildAndCall(t *testing.T) {
	t.Helper()
	m.run(t, "go", "build", "-o", "program", ".")
	want := "Installed " + polynym.Version + " <nil>\n"
	if got := m.run(t, filepath.Join(m.folder, "program", "program"), server.Address); got != want {
		t.Errorf("it printed %q", got)
	}
}

// pack writes the files of a proxy for the module.
func pack(t *testing.T, folder string) {
	t.Helper()
	definition, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	writeNew(t, filepath.Join(folder, "list"), release+"\n")
	writeNew(t, filepath.Join(folder, release+".info"), `{"Version": "`+release+`"}`)
	writeNew(t, filepath.Join(folder, release+".mod"), string(definition))
	file, err := os.Create(filepath.Join(folder, release+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	archive := zip.NewWriter(file)
	err = fs.WalkDir(os.DirFS("."), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		packed, err := archive.Create(modulePath + "@" + release + "/" + path)
		if err == nil {
			_, err = packed.Write(content)
		}
		return err
	})
	if err == nil {
		err = archive.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

func writeNew(t *testing.T, path, content string) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(path), 0o777)
	if err == nil {
		err = os.WriteFile(path, []byte(content), 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
}
