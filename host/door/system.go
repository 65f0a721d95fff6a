package door

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stockade-dev/stockade/host/githistory"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/tool"
)

// systemModule is the built-in module with the tools that tell the time and what machine
// this is. It is told that when it asks.
const systemModule = "tasks"

// SystemFacts are the names of what the tool system_info can tell.
var SystemFacts = []string{"os", "distribution", "arch", "cpus", "memory", "timezone", "tier", "version"}

// config is what a built-in module is configured with under a name.
func (d *Door) config(module, name string) (string, bool) {
	if module == gitTool {
		return d.hiddenFromGit(strings.Split(name, "\n")), true
	}
	if value, ok := d.opts.Config[module][name]; ok {
		return value, true
	}
	if module != systemModule {
		return "", false
	}
	if name == "utc_offset" { // which the system prompt tells, too
		return time.Now().Format("-07:00"), true
	}
	if slices.Contains(d.opts.SystemFacts, name) {
		return d.fact(name), true
	}
	return "", false
}

// gitTool is the built-in module that reads repositories, and its tool.
const gitTool = "git"

// hiddenFromGit tells that module which paths of a repository are hidden, because it finds
// them in old revisions too. The question has its git directory, its main worktree and
// another one, the last two if they are known. A line is a path; "*" is what cannot be told,
// also without a question.
func (d *Door) hiddenFromGit(question []string) string {
	const lines = 4 // the first is the name
	if len(d.ceiling.Hidden) == 0 {
		return ""
	}
	if len(question) != lines {
		return "*"
	}
	var hidden []string
	for _, l := range d.ceiling.Hidden {
		hidden = append(hidden, l.Value)
	}
	found, known := githistory.HiddenPaths(question[1], question[2], question[3], hidden)
	text := strings.Join(found, "\n")
	if !known || strings.Contains(strings.Join(hidden, ""), "\n") || len(text) > tool.MaxConfigBytes {
		return "*"
	}
	return text
}

// fact is one thing about this machine; empty if it is not known.
func (d *Door) fact(name string) string {
	switch name {
	case "os":
		return runtime.GOOS
	case "distribution":
		return distribution("/etc/os-release")
	case "arch":
		return runtime.GOARCH
	case "cpus":
		return strconv.Itoa(runtime.NumCPU())
	case "memory":
		return memory("/proc/meminfo")
	case "timezone":
		return timezone(os.Getenv("TZ"), "/etc/localtime", time.Now())
	case "tier":
		tier := d.Tier()
		return tier.String() + " of " + strconv.Itoa(int(policy.MaxTier))
	case "version":
		return d.opts.Program
	}
	return ""
}

// lines are the lines of a file of the system; none if it cannot be read.
func lines(file string) []string {
	text, _ := os.ReadFile(file)
	return strings.Split(string(text), "\n")
}

// distribution is what os-release calls the system.
func distribution(file string) string {
	for _, line := range lines(file) {
		if value, ok := strings.CutPrefix(line, "PRETTY_NAME="); ok {
			return strings.Trim(value, `"'`)
		}
	}
	return ""
}

// memory is how much of it the machine has.
func memory(file string) string {
	for _, line := range lines(file) {
		var kib uint64
		if n, _ := fmt.Sscanf(line, "MemTotal: %d kB", &kib); n == 1 {
			return fmt.Sprintf("%.1f GiB", float64(kib)/(1<<20))
		}
	}
	return ""
}

// timezone is the name of the time zone, such as Europe/Berlin, by the variable or the
// link that sets it; else its abbreviation.
func timezone(variable, link string, now time.Time) string {
	name := strings.TrimPrefix(variable, ":")
	if name == "" {
		if target, err := filepath.EvalSymlinks(link); err == nil {
			if _, below, ok := strings.Cut(filepath.ToSlash(target), "/zoneinfo/"); ok {
				name = below
			}
		}
	}
	if _, err := time.LoadLocation(name); name == "" || err != nil {
		name, _ = now.Zone()
	}
	return name
}
