package instructions

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/stockade-dev/stockade/host/rootedfs"
)

// Limits of a draft; others are left out.
const (
	maxListed  = 20   // commands of one kind, and directories that are listed
	maxEntries = 1000 // entries of the project's directory that are read
)

// plainName matches names that a draft may show: those that need no quotes in a shell or in
// Markdown.
var plainName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.:-]{0,39}$`) })

// makeTarget matches a rule of a makefile. Its first group is the target.
var makeTarget = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^([A-Za-z0-9][A-Za-z0-9_.-]*):([^=]|$)`) })

// builds lists files that show the language of a project, each with a function that returns the
// commands to build the project from the text of the file; nil: none are known.
var builds = []struct {
	file, language string
	commands       func(text string) []string
}{
	{"Makefile", "", makeTargets},
	{"go.mod", "Go", always("go build ./...", "go vet ./...", "go test ./...")},
	{"Cargo.toml", "Rust", always("cargo build", "cargo test")},
	{"package.json", "JavaScript or TypeScript", npmScripts},
	{"pyproject.toml", "Python", nil},
	{"requirements.txt", "Python", nil},
	{"pom.xml", "Java", always("mvn test")},
	{"build.gradle", "Java or Kotlin", always("./gradlew build")},
	{"CMakeLists.txt", "C or C++", always("cmake -B build", "cmake --build build")},
}

func always(commands ...string) func(string) []string {
	return func(string) []string { return commands }
}

func makeTargets(text string) (out []string) {
	for _, m := range makeTarget().FindAllStringSubmatch(text, -1) {
		if command := "make " + m[1]; plainName().MatchString(m[1]) && !slices.Contains(out, command) {
			out = append(out, command)
		}
	}
	return out
}

func npmScripts(text string) []string {
	var p struct {
		Scripts map[string]json.RawMessage `json:"scripts"`
	}
	if json.Unmarshal([]byte(text), &p) != nil {
		return nil
	}
	var out []string
	for name := range p.Scripts {
		if plainName().MatchString(name) {
			out = append(out, "npm run "+name)
		}
	}
	slices.Sort(out)
	return out
}

// Draft returns a first AGENTS.md for the project in a directory. It has the languages, commands
// and directories that can be found without a model, and placeholders for the rest. The error is
// that of reading the directory.
func Draft(dir string) (string, error) {
	root, _, err := rootedfs.Open(dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	var languages, commands []string
	for _, b := range builds {
		f, err := read(root, b.file, MaxBytes)
		if err != nil {
			continue // it does not exist, or must not be read
		}
		if b.language != "" && !slices.Contains(languages, b.language) {
			languages = append(languages, b.language)
		}
		if b.commands != nil {
			found := b.commands(f.Text)
			commands = append(commands, found[:min(len(found), maxListed)]...)
		}
	}
	places, err := directories(root)
	if err != nil {
		return "", err
	}

	var s strings.Builder
	title := filepath.Base(dir)
	if !plainName().MatchString(title) {
		title = "This project"
	}
	fmt.Fprintf(&s, "# %s\n\nWhat an agent has to know to work here. Replace the text in parentheses.\n\n(What the project is for, in two sentences.)\n", title)
	if languages != nil {
		fmt.Fprintf(&s, "\nIt is written in %s.\n", strings.Join(languages, " and "))
	}
	section := func(head string, items []string, or string) {
		fmt.Fprintf(&s, "\n## %s\n\n", head)
		for _, item := range items {
			fmt.Fprintf(&s, "- `%s`\n", item)
		}
		s.WriteString(or + "\n")
	}
	section("Commands", commands, "- (Which of them have to pass before a change is done.)")
	section("Where things are", places, "- (What each of them is for.)")
	section("Rules", nil, "- (Style, what must not be changed, what is easily done wrong.)")
	return s.String(), nil
}

// directories returns the names of the directories in the project's directory, except hidden ones.
func directories(root rootedfs.Root) (out []string, err error) {
	f, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	entries, _ := f.ReadDir(maxEntries) // a part is enough
	for _, e := range entries {
		if e.IsDir() && plainName().MatchString(e.Name()) && e.Name() != "node_modules" {
			out = append(out, e.Name()+"/")
		}
	}
	slices.Sort(out)
	return out[:min(len(out), maxListed)], nil
}
