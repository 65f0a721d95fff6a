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

// systemModule is the built-in module with the tools for the time and for facts about this
// machine. The host gives it the facts as configuration values.
const systemModule = "tasks"

// SystemFacts lists the names of the facts that the tool system_info can report.
var SystemFacts = []string{"os", "distribution", "arch", "cpus", "memory", "timezone", "tier", "version"}

// config returns a configuration value of a built-in module, by its name; false: there is
// none.
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
	if name == "utc_offset" { // the system prompt also has it
		return time.Now().Format("-07:00"), true
	}
	if slices.Contains(d.opts.SystemFacts, name) {
		return d.fact(name), true
	}
	return "", false
}

// gitTool is the name of the built-in module that reads git repositories, and of its tool.
const gitTool = "git"

// hiddenFromGit returns the paths of a repository that the layers hide, for the git module, which
// also finds them in old revisions. The lines of the question are the name of the value, the git
// directory, the main worktree and another worktree; the worktrees are empty if unknown. The
// answer has one path a line. It is "*" if the paths are not known, are too many, or if the
// question is incomplete.
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

// fact returns one fact about this machine; empty if unknown.
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

// lines returns the lines of a file; one empty line if it cannot be read.
func lines(file string) []string {
	text, _ := os.ReadFile(file)
	return strings.Split(string(text), "\n")
}

// distribution returns the name of the system in an os-release file; empty if unknown.
func distribution(file string) string {
	for _, line := range lines(file) {
		if value, ok := strings.CutPrefix(line, "PRETTY_NAME="); ok {
			return strings.Trim(value, `"'`)
		}
	}
	return ""
}

// memory returns the size of the machine's memory, such as "15.5 GiB"; empty if unknown.
func memory(file string) string {
	for _, line := range lines(file) {
		var kib uint64
		if n, _ := fmt.Sscanf(line, "MemTotal: %d kB", &kib); n == 1 {
			return fmt.Sprintf("%.1f GiB", float64(kib)/(1<<20))
		}
	}
	return ""
}

// timezone returns the name of the time zone, such as Europe/Berlin, from the variable or
// the link that sets it; without a valid name there, its abbreviation.
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
