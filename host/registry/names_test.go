package registry

import (
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/guests/gueststest"
	"github.com/stockade-dev/stockade/host/registry/store"
	"github.com/stockade-dev/stockade/host/tool"
)

func TestNamesOfModules(t *testing.T) {
	gueststest.Need(t)
	others := []string{"clock", "weather_today"}
	for _, c := range []struct {
		it, name, want string
	}{
		{"a name of its own", "meteo", ""},
		{"one that is taken", "clock", `there is a module "clock" already`},
		{"one that differs in case", "Clock", "looks like"},
		{"a digit for a letter", "cl0ck", "looks like"},
		{"a digit in a pair of letters that looks like one", "c1ock", "looks like"},
		{"a pair of letters for one", "dock", "looks like"},
		{"a hyphen for an underscore", "weather-today", "looks like"},
		{"two underscores for one", "weather__today", "looks like"},
		{"an underscore behind it", "clock_", "looks like"},
		{"a built-in tool", "bash", "built-in"},
		{"another name of a built-in tool", "read_file", "built-in"},
		{"what looks like a built-in tool", "read_fi1e", "looks like"},
		{"a built-in module, which --tools takes", "files", "built-in"},
		{"the tool that lists groups", "list_tools", "built-in"},
		{"a number behind a built-in tool", "file_read_2", "looks like"},
		{"without a separator", "bash2", "looks like"},
		{"a version behind it", "grep-v2", "looks like"},
		{"a hyphen in it", "file-read", "looks like"},
		{"another case", "File_Read", "looks like"},
		{"an underscore behind a built-in tool", "file_read_", "looks like"},
		{"no underscore in it", "fileread", "looks like"},
		{"a number behind another name of a built-in tool", "read_file3", "looks like"},
		{"with letters that look alike", "fi1e_read_2", "looks like"},
		{"a version of two numbers", "bash_2_0", "looks like"},
		{"the same with hyphens", "bash-1-2", "looks like"},
		{"a plural", "file_reads", "looks like"},
		{"a letter and two numbers", "file_read_v1_2", "looks like"},
		{"a revision", "bash_r2", "looks like"},
		{"a number in front of a built-in tool", "2bash", "looks like"},
		{"a version in front of it", "v2_bash", "looks like"},
		{"a version without a number", "bash_v", "looks like"},
		{"a letter twice", "bashh", "looks like"},
		{"a plural of a version", "v3-greps_2", "looks like"},
		{"an own name that ends as a version does", "server", ""},
		{"one that begins so", "verbs", ""},
		{"what the names of built-in tools begin with", "file", ""},
		{"an own name that begins so", "files_search", ""},
		{"an own name that begins with a built-in tool", "git_blame_range", ""},
		{"what one built-in tool begins with", "http", ""},
		{"a number of its own", "sha256", ""},
		{"a number behind a built-in module", "web3", ""},
		{"a name that holds one", "bashful", ""},
		{"a number in front", "2file", ""},
		{"an option", "-x", "option"},
		{"a path", "../x", "letters"},
		{"nothing", "", "letters"},
		{"too much", strings.Repeat("a", 41), "letters"},
	} {
		t.Run(c.it, func(t *testing.T) {
			err := CheckName(c.name, others)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%q: %v, want %q", c.name, err, c.want)
			}
		})
	}
}

// Where two tools would have names that a person takes for each other, the first one
// is offered.
func TestSettleNames(t *testing.T) {
	gueststest.Need(t)
	module := func(name string, tools ...string) AddedModule {
		a := AddedModule{Record: store.Record{Name: name}}
		for _, inner := range tools {
			a.Tools = append(a.Tools, AddedTool{Name: name + "_" + inner, NameInModule: inner, Entry: &tool.Entry{}})
		}
		return a
	}
	got := map[string]bool{}
	for _, m := range ResolveNames([]AddedModule{module("read", "file", "all"), module("weather", "today"), module("weather_", "today"), module("list", "tools", strings.Repeat("x", 64)),
		module("file", "read_2", "-x", "seek"), module("http", "fetch_2", "fetchv2", "get", "-x"), module("ba", "sh", "sh2"), module("8a", "sh", "sh2"), module("apply", "-patch", "patch-9", "patches")}) {
		for _, t := range m.Tools {
			got[t.Name] = t.OffReason == ""
		}
	}
	for name, on := range map[string]bool{
		"file_read_2": false, "file_-x": false, "file_seek": true, "http_fetch_2": false, "http_get": true, "http_-x": false, "http_fetchv2": false,
		"ba_sh": false, "8a_sh": false, "8a_sh2": false, "ba_sh2": false, "apply_-patch": false, "apply_patch-9": false, "apply_patches": true,
		"read_file": false, "read_all": true, "weather_today": true, "weather__today": false, "list_tools": false, "list_" + strings.Repeat("x", 64): false} {
		if got[name] != on {
			t.Errorf("%s is offered: %v, want %v", name, got[name], on)
		}
	}
}
