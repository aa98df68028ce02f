package polynym_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

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
