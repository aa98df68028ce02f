package polynym_test

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/polynym/polynym/clients/go"
	"github.com/polynym/polynym/clients/go/polynymv1"
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

// TestNoReasonIsMissing compares the constants with the documentation of the API.
func TestNoReasonIsMissing(t *testing.T) {
	_, errors, _ := strings.Cut(readProject(t, "docs/api.md"), "\n## Errors\n")
	documented := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `.*$").FindAllString(errors, -1) {
		cells := strings.Split(row, "|")
		for _, reason := range regexp.MustCompile("`([A-Z_]+)`").FindAllStringSubmatch(cells[2], -1) {
			documented[reason[1]] = true
		}
	}
	file, err := parser.ParseFile(token.NewFileSet(), "reasons.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(node ast.Node) bool {
		if literal, ok := node.(*ast.BasicLit); ok {
			reason, _ := strconv.Unquote(literal.Value)
			if !documented[reason] {
				t.Errorf("%s is not documented", reason)
			}
			delete(documented, reason)
		}
		return true
	})
	for reason := range documented {
		t.Errorf("%s has no constant", reason)
	}
}

func TestAnObserverSeesEachAttempt(t *testing.T) {
	fake := startFake(t, answers(&polynymv1.GetUserResponse{},
		failure(codes.Unavailable, "STORE_UNAVAILABLE"), failure(codes.Unavailable, "RULES_CHANGING")))
	type key struct{}
	var seen []polynym.Attempt
	client := connect(t, fake.address, patience,
		polynym.WithObserver(func(ctx context.Context, attempt polynym.Attempt) {
			if ctx.Value(key{}) != true || attempt.Duration <= 0 {
				t.Errorf("%+v", attempt)
			}
			attempt.Duration = 0
			seen = append(seen, attempt)
		}))
	if _, err := client.GetUser(context.WithValue(t.Context(), key{}, true), "1"); err != nil {
		t.Fatal(err)
	}
	attempt := polynym.Attempt{
		Service: "polynym.v1.DirectoryService", Method: "GetUser", Server: fake.address, Number: 1,
		Code: codes.Unavailable, Reason: polynym.ReasonStoreUnavailable}
	want := []polynym.Attempt{attempt, attempt, attempt}
	want[1].Number, want[1].Reason = 2, polynym.ReasonRulesChanging
	want[2].Number, want[2].Reason, want[2].Code = 3, "", codes.OK
	if !slices.Equal(seen, want) {
		t.Errorf("%+v", seen)
	}
}
