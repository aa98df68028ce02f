package polynym_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/polynym/polynym/clients/go"
)

// readProject reads a file of the project, by its path from the root.
func readProject(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile("../../" + path)
	if os.IsNotExist(err) {
		t.Skip("the project is not around the package")
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestTheVersionIsThatOfTheProject(t *testing.T) {
	_, workspace, _ := strings.Cut(readProject(t, "Cargo.toml"), "[workspace.package]")
	version := regexp.MustCompile(`(?m)^version = "(.*)"$`).FindStringSubmatch(workspace)
	if version == nil || version[1] != polynym.Version {
		t.Errorf("the version is %v", version)
	}
}

func TestTheLicenseIsThatOfTheProject(t *testing.T) {
	license, err := os.ReadFile("LICENSE")
	if err != nil || string(license) != readProject(t, "LICENSE") {
		t.Errorf("the license is another: %v", err)
	}
}
