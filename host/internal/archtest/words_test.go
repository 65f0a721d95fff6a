package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"strings"
	"testing"
)

// riddles are the forms of comments that readers have to decode. maxPercent limits the
// share of all comments on declarations and fields with that form.
var riddles = []struct {
	name       string
	maxPercent float64
	is         func(text string) bool
}{
	{"begins with a question word, or with NAME is what", 2, regexp.MustCompile(
		`(?i)^([\w.]+((, | and )[\w.]+)* (is|are|says?|tells?) )?(who|whom|what|whose|where|when|why|how)\b`).MatchString},
	{"has a first clause that ends with a pronoun", 1, regexp.MustCompile(
		`(?i)^([^,;:.]|[,;:.]\S)*\b(that|it|one|them|this|those|these|so)([,;:.](\s|$)|$)`).MatchString},
	{"has three question words in its first sentence", 0.2, func(text string) bool {
		return len(questionWord.FindAllString(firstSentence.FindString(text), -1)) >= 3
	}},
}

var (
	questionWord  = regexp.MustCompile(`(?i)\b(who|whom|what|whose|which|that|where|when|why|how)\b`)
	firstSentence = regexp.MustCompile(`^([^.!?]|[.!?]\S)*`)
)

// TestCommentsSayWhatAThingIs counts riddles in the comments of all packages. A comment
// can avoid the forms and still be a riddle: the count only finds those that slip in.
func TestCommentsSayWhatAThingIs(t *testing.T) {
	all := 0
	found := make([][]string, len(riddles))
	files(t, ".go", func(name string, content []byte) {
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, name, content, parser.ParseComments)
		if err != nil || ast.IsGenerated(f) || strings.HasSuffix(name, "_test.go") {
			return
		}
		for _, comment := range comments(f) {
			text := strings.Join(strings.Fields(comment.Text()), " ")
			if text == "" {
				continue
			}
			all++
			for n, riddle := range riddles {
				if riddle.is(text) {
					place := fset.Position(comment.Pos())
					found[n] = append(found[n], strings.TrimPrefix(path.Clean(place.String()), root+"/")+": "+text)
				}
			}
		}
	})
	if all < 10_000 {
		t.Errorf("only %d comments were found: the test does not work", all)
	}
	for n, riddle := range riddles {
		if share := 100 * float64(len(found[n])) / float64(all); share > riddle.maxPercent {
			t.Errorf("%.1f %% of %d comments %s, and %.1f %% may. They are:\n%s", share, all, riddle.name, riddle.maxPercent, strings.Join(found[n], "\n"))
		}
	}
}

// TestRiddlesAreFound has an example of each form, and comments with none of them.
func TestRiddlesAreFound(t *testing.T) {
	for text, want := range map[string]string{
		"limit is how many bytes a call may write.":                           riddles[0].name,
		"a, b and c are what the engine asks for.":                            riddles[0].name,
		"where the file lies":                                                 riddles[0].name,
		"stageDir is the directory of that; empty: in memory.":                riddles[1].name,
		"mark has the place in which the line that was lost stood, and when.": riddles[2].name,
		"stageDir is the directory of the stage area; empty: in memory.":      "",
		"Whatever follows v1.2 is ignored.":                                   "",
	} {
		got := ""
		for _, riddle := range riddles {
			if riddle.is(text) {
				got += riddle.name
			}
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// comments returns the comments on the declarations and fields of a file.
func comments(f *ast.File) (out []*ast.CommentGroup) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			out = append(out, n.Doc)
		case *ast.GenDecl:
			out = append(out, n.Doc)
		case *ast.TypeSpec:
			out = append(out, n.Doc, n.Comment)
		case *ast.ValueSpec:
			out = append(out, n.Doc, n.Comment)
		case *ast.Field:
			out = append(out, n.Doc, n.Comment)
		}
		return true
	})
	return out
}
