package tool

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func named(names ...string) Manifest {
	m := Manifest{Name: "m"}
	for _, n := range names {
		m.Tools = append(m.Tools, Spec{Definition: Definition{Name: n, Description: n, Parameters: json.RawMessage(`{"type":"object"}`)}})
	}
	return m
}

func TestCatalogFindsTools(t *testing.T) {
	files, shell := &Module{Name: "files"}, &Module{Name: "shell"}
	c, err := NewCatalog(map[*Module]Manifest{files: named("grep", "file_read", "file_write"), shell: named("bash")})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"bash": "bash", "execute_command": "bash", "read_file": "file_read", "write_file": "file_write", "grep_search": "grep",
		"Bash": "", "": "", "glob": "", "bash ": "",
	} {
		e, ok := c.Find(name)
		if ok != (want != "") || ok && (e.Name != want || e.Schema == nil || e.Module != map[bool]*Module{true: shell, false: files}[want == "bash"]) {
			t.Errorf("%q: got %+v, %v", name, e, ok)
		}
	}
	want := []string{"bash", "file_read", "file_write", "grep"}
	if got := c.Names(); !slices.Equal(got, want) {
		t.Errorf("names: %v", got)
	}
	c.Names()[0] = "changed"
	for i, e := range c.Entries() {
		if e.Name != want[i] {
			t.Errorf("entry %d is %s", i, e.Name)
		}
	}
	for word, near := range map[string]string{"flie_read": "file_read", "gerp": "grep", "kubernetes": "", "": ""} {
		if got := c.Nearest(word); got != near {
			t.Errorf("nearest to %q is %q, want %q", word, got, near)
		}
	}
}

func TestAToolOfThatNameComesBeforeAnAlias(t *testing.T) {
	other := &Module{Name: "other"}
	c, err := NewCatalog(map[*Module]Manifest{{Name: "files"}: named("file_read"), other: named("read_file")})
	if err != nil {
		t.Fatal(err)
	}
	if e, _ := c.Find("read_file"); e.Module != other {
		t.Errorf("read_file is %s of %s", e.Name, e.Module.Name)
	}
}

func TestNoToolTakesThePlaceOfAnother(t *testing.T) {
	_, err := NewCatalog(map[*Module]Manifest{{Name: "one"}: named("grep"), {Name: "two"}: named("ls", "grep")})
	if err == nil || !strings.Contains(err.Error(), `"grep"`) || !strings.Contains(err.Error(), `"one"`) || !strings.Contains(err.Error(), `"two"`) {
		t.Errorf("got %v", err)
	}
	if _, err := NewCatalog(map[*Module]Manifest{{Name: "one"}: named("grep", "grep")}); err == nil {
		t.Error("two tools of one name in one module were accepted")
	}
}

func TestNoModuleTakesANameOfTheHost(t *testing.T) {
	one := named("grep").Tools[0]
	list := named(ListTools).Tools[0]
	for name, c := range map[string]struct {
		entry *Entry
		want  string
	}{
		"a tool of an added module":  {NewEntry(list, &Module{Name: "m", Origin: OriginAdded}, ""), `"list_tools"`},
		"a tool of a built-in one":   {NewEntry(list, &Module{Name: "m", Origin: OriginBuiltin}, ""), `"list_tools"`},
		"a module that was added":    {NewEntry(one, &Module{Name: ListModule, Origin: OriginAdded}, ""), `"catalog"`},
		"a file may have any name":   {NewEntry(one, &Module{Name: ListModule, Origin: OriginFile}, ""), ""},
		"a longer name is no danger": {NewEntry(named("acme_" + ListTools).Tools[0], &Module{Name: "m", Origin: OriginAdded}, ""), ""},
	} {
		if _, err := NewCatalogOf([]*Entry{c.entry}); (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOnlyTheToolsThatAreNamed(t *testing.T) {
	c, err := NewCatalog(map[*Module]Manifest{{Name: "files"}: named("grep", "file_read", "ls"), {Name: "shell"}: named("bash"), {Name: "ls"}: named("dir")})
	if err != nil {
		t.Fatal(err)
	}
	for names, want := range map[string]string{
		"":                     "",
		"grep":                 "grep",
		"files":                "file_read grep ls",
		"files,grep,bash,grep": "bash file_read grep ls",
		"read_file":            "file_read",
		"ls":                   "dir ls", // a tool and a module
		"flies":                `there is no tool and no module "flies" (did you mean "files"?)`,
		"gerp":                 `there is no tool and no module "gerp" (did you mean "grep"?)`,
		"grep,":                `there is no tool and no module ""`,
		"Bash,kubernetes":      `there is no tool and no module "Bash" (did you mean "bash"?)`,
	} {
		var list []string
		if names != "" {
			list = strings.Split(names, ",")
		}
		only, err := c.Only(list)
		got := fmt.Sprint(err)
		if err == nil {
			got = strings.Join(only.Names(), " ")
		}
		if got != want {
			t.Errorf("%q: got %s, want %s", names, got, want)
		}
	}
}

func TestGroupsAreThoseOfAddedModules(t *testing.T) {
	entry := func(name, module string, from Origin) *Entry {
		return NewEntry(named(name).Tools[0], &Module{Name: module, Origin: from}, "")
	}
	builtin, groups := Groups([]*Entry{
		entry("a", "wiki", OriginAdded), entry("b", "files", OriginBuiltin), entry("c", "mail", OriginAdded), entry("d", "wiki", OriginFile), entry("e", "files", OriginAdded),
	})
	got := "builtin:"
	for _, g := range append([]Group{{Tools: builtin}}, groups...) {
		got += " " + g.Name
		for _, e := range g.Tools {
			got += " " + e.Name
		}
	}
	if want := "builtin:  b files e mail c wiki a d"; got != want {
		t.Errorf("got %s", got)
	}
}

// A schema is compiled when it is needed. An invalid schema lets no call through, even if it
// was not refused with its manifest.
func TestASchemaThatIsNone(t *testing.T) {
	m := named("broken")
	m.Tools[0].Parameters = json.RawMessage(`{"type":"array","properties":{"a":{"type":"string"}}}`)
	c, err := NewCatalog(map[*Module]Manifest{{Name: "m"}: m})
	if err != nil {
		t.Fatal(err)
	}
	e, _ := c.Find("broken")
	if args, err := e.Schema.Check(t.Context(), json.RawMessage(`{}`)); err == nil {
		t.Errorf("it takes %s", args)
	}
	if e.Schema.HasProperty("a") || e.Schema.IsString("a") {
		t.Error("it has properties")
	}
}

// BenchmarkCatalog measures the work of a process that calls none of its tools: parsing the
// manifests, and building the catalog. Each tool has ten arguments.
func BenchmarkCatalog(b *testing.B) {
	property := `"argument_%d":{"type":"string","description":"Which of the things in the account of the user is meant.","maxLength":200}`
	var properties []string
	for i := range 10 {
		properties = append(properties, fmt.Sprintf(property, i))
	}
	spec := named("tool").Tools[0]
	spec.Parameters = json.RawMessage(`{"type":"object","properties":{` + strings.Join(properties, ",") + `}}`)
	manifest := Marshal(Manifest{Name: "m", Tools: []Spec{spec}})
	for _, n := range []int{50, 500} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				modules := map[*Module]Manifest{}
				for i := range n {
					var m Manifest
					if err := json.Unmarshal(manifest, &m); err != nil {
						b.Fatal(err)
					}
					m.Tools[0].Name = fmt.Sprint("tool", i)
					modules[&Module{Name: m.Tools[0].Name}] = m
				}
				if _, err := NewCatalog(modules); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprint(n, "/listing"), func(b *testing.B) {
			var entries []*Entry
			for i := range n {
				e := NewEntry(spec, &Module{Name: fmt.Sprint("m", i)}, "")
				e.Name = fmt.Sprint("tool", i)
				entries = append(entries, e)
			}
			for b.Loop() {
				if _, err := NewCatalogOf(entries); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestForeignNamesGetAHintToOurs(t *testing.T) {
	files, shell := &Module{Name: "files", Origin: OriginBuiltin}, &Module{Name: "shell", Origin: OriginBuiltin}
	others := &Module{Name: "others", Origin: OriginBuiltin} // of several modules
	all, err := NewCatalog(map[*Module]Manifest{others: named("git", "http_fetch", "web_search", "add_task", "update_task", "list_tasks", "get_current_time", "get_working_directory", "system_info"), files: named("ls", "glob", "grep", "file_read", "file_write", "file_edit", "insert_lines", "apply_patch"), shell: named("bash")})
	if err != nil {
		t.Fatal(err)
	}
	few, err := NewCatalog(map[*Module]Manifest{files: named("file_read"), {Name: "other", Origin: OriginAdded}: named("bash")})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ what, name, all, few string }{
		{"of a system that we know", "str_replace", "use file_edit with path", ""},
		{"of one that patches", "apply_diff", "use apply_patch with patch", ""},
		{"of an API", "str_replace_based_edit_tool", "use file_read to view", ""},
		{"of a command", "run_shell_command", "use bash with command", ""},
		{"of a small letter here", "Read", "use file_read with path", "use file_read with path"},
		{"of ours in other letters", "Bash", "use bash", ""},
		{"with a namespace", "functions.exec_command", "use bash with command", ""},
		{"with a server before it", "developer__text-editor", "use file_read to view", ""},
		{"an alias with a namespace", "default_api.read_file", "use file_read", "use file_read"},
		{"of what needs no tool", "ask_user", "write it in your answer", "write it in your answer"},
		{"of a list of tasks", "TodoWrite", "use add_task with content", ""},
		{"of the web", "WebFetch", "use http_fetch with url", ""},
		{"of a search of the web", "google_web_search", "use web_search with query", ""},
		{"of git", "mcp__git__git_diff_unstaged", "use git with operation", ""},
		{"of git that changes something", "git_commit", "use bash with command", ""},
		{"of what is not known", "launch_missiles", "", ""},
		{"of nothing", "", "", ""},
		{"without an end", strings.Repeat("read", 1000), "", ""},
	} {
		for catalog, want := range map[*Catalog]string{all: c.all, few: c.few} {
			if got, _ := catalog.EquivalentOf(c.name); !strings.HasPrefix(got, want) || want == "" && got != "" {
				t.Errorf("%s: of %d tools: got %q, want %q", c.what, len(catalog.names), got, want)
			}
		}
	}
	for name, s := range foreignTools() {
		if _, ok := all.Find(name); ok {
			t.Errorf("%s is found anyway", name)
		}
		if how, tools := all.EquivalentOf(name); how != s.how || len(tools) != len(strings.Fields(s.tools)) {
			t.Errorf("%s is not answered by its row", name)
		}
	}
}

func TestANameIsTakenOutOfWhatIsAroundIt(t *testing.T) {
	for name, want := range map[string]string{
		"grep": "grep", "functions.grep": "grep", "function.grep": "grep", "tools.grep": "grep", "tool:grep": "grep", "default_api:grep": "grep", "functions.File_Read": "File_Read",
		"grep:0": "grep", "grep:12": "grep", "functions.grep:0": "grep", "grep()": "grep", " grep": "grep", "grep \n": "grep", `"grep"`: "grep", "`grep`": "grep",
		"grep<|channel|>commentary": "grep", "grep<|channel|>": "grep", "functions.grep<|channel|>commentary<|constrain|>json": "grep", "<|tool|>grep": "grep", "<|a|><|b|>grep": "grep",
		"mcp__x__grep": "mcp__x__grep", "functions": "functions",

		"": "", "functions.": "", "functions.functions.grep": "", "grep:": "", "grep:x": "", "grep:00000": "", "grep(x)": "", "grep grep": "", "grep,glob": "", "file.read": "",
		"grep<|channel|>file_read": "", "grep<|channel|": "", "grep<channel>": "", "grep{}": "", "x.grep": "", "functions/grep": "", "multi_tool_use.grep": "",
		"gr\u0435p": "", "\u00a0grep": "", "grep\u200b": "", "\u202egrep": "", "gre\u212a": "", "\x00grep": "", "\x1b[mgrep": "", "\uff47rep": "", strings.Repeat(" ", 1<<20) + "x": "",
	} {
		if got := BareName(name); got != want {
			t.Errorf("%.40q is %q, want %q", name, got, want)
		}
	}
}
