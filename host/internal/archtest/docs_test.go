package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../../.."

// TestTheMapIsTrue compares the lists in host/doc.go with the packages and the table.
func TestTheMapIsTrue(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), root+"/host/doc.go", nil, parser.ParseComments|parser.PackageClauseOnly)
	if err != nil {
		t.Fatal(err)
	}
	doc := f.Doc.Text()
	pkgs := list(t)

	var listed, there []string
	for _, row := range rows(doc, "The packages") {
		name, description, _ := strings.Cut(row, " ")
		listed = append(listed, "host/"+name)
		if strings.TrimSpace(description) == "" {
			t.Errorf("host/doc.go does not say what %s is for", name)
		}
	}
	for _, p := range pkgs {
		if name := strings.TrimPrefix(p.ImportPath, module); under(name, "host") && name != "host" {
			there = append(there, name)
		}
	}
	for _, name := range listed {
		if !slices.Contains(there, name) {
			t.Errorf("host/doc.go lists %s, which is not there", name)
		}
	}
	for _, name := range there {
		if !slices.Contains(listed, name) {
			t.Errorf("host/doc.go does not list %s", name)
		}
	}

	rule := regexp.MustCompile(`^(.*?) +(never|only) +(.*)$`)
	rules := rows(doc, "Imports")
	for _, row := range rules {
		m := rule.FindStringSubmatch(row)
		switch {
		case m == nil:
			t.Errorf("no rule: %s", row)
		case m[2] == "only":
			if got := onlyIn(m[1]); !slices.Equal(got, inHost(m[3])) {
				t.Errorf("host/doc.go: %s; the test has %v", row, got)
			}
		default:
			checkNoImport(t, pkgs, inHost(m[1]), inHost(m[3]))
		}
	}
	if len(rules) == 0 {
		t.Error("no rules were found: the test does not work")
	}
}

// checkNoImport fails if one of the packages, or one below it, imports a forbidden
// package.
func checkNoImport(t *testing.T, pkgs []pkg, packages, forbidden []string) {
	t.Helper()
	for _, name := range append(slices.Clone(packages), forbidden...) {
		if table[name] == nil {
			t.Errorf("host/doc.go has a rule for %s, which is not there", name)
		}
	}
	for _, p := range pkgs {
		name := strings.TrimPrefix(p.ImportPath, module)
		if !slices.ContainsFunc(packages, func(tree string) bool { return under(name, tree) }) {
			continue
		}
		for _, imp := range p.Imports {
			imp = strings.TrimPrefix(imp, module)
			if slices.ContainsFunc(forbidden, func(tree string) bool { return under(imp, tree) }) {
				t.Errorf("%s imports %s, which host/doc.go forbids", name, imp)
			}
		}
	}
}

// onlyIn returns the packages that may import a library, which is given by the end of its
// name.
func onlyIn(library string) []string {
	for path, owners := range libraryOwners {
		if path == library || strings.HasSuffix(path, "/"+library) {
			return strings.Fields(owners)
		}
	}
	return nil
}

func inHost(names string) (out []string) {
	for name := range strings.SplitSeq(names, ", ") {
		if !strings.HasPrefix(name, "cmd/") {
			name = "host/" + name
		}
		out = append(out, name)
	}
	return out
}

// rows lists the indented lines below a heading.
func rows(doc, heading string) (out []string) {
	_, text, _ := strings.Cut(doc, "# "+heading+"\n")
	text, _, _ = strings.Cut(text, "\n# ")
	for line := range strings.Lines(text) {
		if row, ok := strings.CutPrefix(line, "\t"); ok {
			out = append(out, strings.TrimSpace(row))
		}
	}
	return out
}

// files calls do with each file of the project whose name ends in suffix.
func files(t *testing.T, suffix string, do func(path string, content []byte)) {
	t.Helper()
	found := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "bin" || d.Name() == "testdata"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, suffix):
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		found++
		do(filepath.ToSlash(path), content)
		return nil
	})
	if err != nil || found == 0 {
		t.Fatalf("%d files end in %s: %v", found, suffix, err)
	}
}

var (
	heading   = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	inline    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	reference = regexp.MustCompile(`(?m)^\[([^]]+)\]: (\S+)$`)
	noAnchor  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	fence     = regexp.MustCompile("(?ms)^```.*?^```$")
)

func TestLinksOfDocumentsLeadSomewhere(t *testing.T) {
	links := 0
	files(t, ".md", func(path string, content []byte) {
		text := fence.ReplaceAllString(string(content), "")
		var targets []string
		for _, m := range inline.FindAllStringSubmatch(text, -1) {
			targets = append(targets, m[1])
		}
		for _, m := range reference.FindAllStringSubmatch(text, -1) {
			targets = append(targets, m[2])
			if strings.Count(text, "["+m[1]+"]") < 2 {
				t.Errorf("%s: nothing leads to [%s]", path, m[1])
			}
		}
		for _, target := range targets {
			if strings.Contains(target, "://") {
				continue
			}
			links++
			file, fragment, _ := strings.Cut(target, "#")
			to := path
			if file != "" {
				to = filepath.Join(filepath.Dir(path), filepath.FromSlash(file))
			}
			switch page, err := os.ReadFile(to); {
			case fragment == "":
				if _, err := os.Stat(to); err != nil {
					t.Errorf("%s: %s: %v", path, target, err)
				}
			case err != nil || !slices.Contains(anchors(string(page)), fragment):
				t.Errorf("%s: %s leads to no heading", path, target)
			}
		}
	})
	if links < 50 {
		t.Errorf("only %d links were found: the test does not work", links)
	}
}

// anchors lists the anchors that GitHub makes from the headings of a page.
func anchors(page string) (out []string) {
	for _, m := range heading.FindAllStringSubmatch(fence.ReplaceAllString(page, ""), -1) {
		out = append(out, anchor(m[1]))
	}
	return out
}

func anchor(heading string) string {
	name := strings.ToLower(strings.TrimSpace(heading))
	name = noAnchor.ReplaceAllString(name, "")
	return strings.ReplaceAll(name, " ", "-")
}

func TestREADMEIsShort(t *testing.T) {
	const most = 150
	readme, err := os.ReadFile(root + "/README.md")
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(string(readme), "\n"); lines > most {
		t.Errorf("README.md has %d lines, and may have %d: topics in cmd/stockade/help have room", lines, most)
	}
}

// TestRationaleAnswersWhatIsAsked holds RATIONALE.md to its size, and checks that it has each
// question to which a comment refers.
func TestRationaleAnswersWhatIsAsked(t *testing.T) {
	page, err := os.ReadFile(root + "/host/RATIONALE.md")
	if err != nil {
		t.Fatal(err)
	}
	var questions []string
	for _, m := range regexp.MustCompile(`(?m)^### (.*)$`).FindAllStringSubmatch(string(page), -1) {
		questions = append(questions, m[1])
	}
	const most = 80 << 10
	if len(page) > most {
		t.Errorf("RATIONALE.md has %d bytes, and may have %d: a decision, its reason and its figures are enough", len(page), most)
	}

	refers := regexp.MustCompile(`RATIONALE, "([^"]*)"`)
	references := 0
	files(t, ".go", func(path string, content []byte) {
		if strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, "host/doc.go") {
			return
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, content, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Error(err)
			return
		}
		for _, comment := range f.Comments {
			text := words(comment)
			found := refers.FindAllStringSubmatch(text, -1)
			references += len(found)
			if len(found) < strings.Count(text, "RATIONALE") {
				t.Errorf(`%s: a comment names RATIONALE without a question; write: see RATIONALE, "Why ...?"`, path)
			}
			for _, m := range found {
				if !slices.Contains(questions, m[1]) {
					t.Errorf("%s: RATIONALE has no question %q", path, m[1])
				}
			}
		}
	})
	if references == 0 {
		t.Error("no references were found: the test does not work")
	}
}

// words returns a comment as one line.
func words(comment *ast.CommentGroup) string {
	return strings.Join(strings.Fields(comment.Text()), " ")
}
