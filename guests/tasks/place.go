package main

import (
	"context"
	"strings"
	"time"

	"github.com/stockade-dev/stockade/sdk/go/config"
	"github.com/stockade-dev/stockade/sdk/go/tool"
)

// facts lists the facts of the machine that the host may report: their names in the
// configuration, and their titles in a text.
var facts = []struct{ name, title string }{
	{"os", "system"},
	{"distribution", "distribution"},
	{"arch", "architecture"},
	{"cpus", "processors"},
	{"memory", "memory"},
	{zoneName, "time zone"},
	{"tier", "confinement of commands"},
	{"version", "program"},
}

// Names of facts in the configuration: the time zone, such as Europe/Berlin, and its present
// offset from UTC, such as -03:30. The module has no table of time zones.
const (
	zoneName   = "timezone"
	offsetName = "utc_offset"
)

type timeResult struct {
	Output   string `json:"output"` // ISO 8601
	Weekday  string `json:"weekday"`
	Timezone string `json:"timezone,omitempty"`
}

func currentTime(context.Context, noArgs) (timeResult, error) {
	return timeIn(time.Now(), config.Get), nil
}

// timeIn returns a time in the host's time zone, or in UTC if the host reports none.
func timeIn(now time.Time, get func(string) (string, bool)) timeResult {
	now = now.UTC()
	zone, _ := get(zoneName)
	offset, _ := get(offsetName)
	if at, err := time.Parse("-07:00", offset); err == nil {
		now = now.In(at.Location())
	} else {
		zone = "UTC"
	}
	return timeResult{now.Format("2006-01-02T15:04:05-07:00"), now.Weekday().String(), zone}
}

type placeResult struct {
	Output string `json:"output"`
}

func workingDirectory(ctx context.Context, _ noArgs) (placeResult, error) {
	return placeResult{tool.CallFrom(ctx).Dir}, nil
}

type infoResult struct {
	Output string            `json:"output"`
	Facts  map[string]string `json:"facts"`
}

func systemInfo(context.Context, noArgs) (infoResult, error) { return infoFrom(config.Get) }

func infoFrom(get func(string) (string, bool)) (infoResult, error) {
	out := infoResult{Facts: map[string]string{}}
	var lines []string
	for _, f := range facts {
		if value, _ := get(f.name); value != "" {
			out.Facts[f.name] = value
			lines = append(lines, f.title+": "+value)
		}
	}
	if lines == nil {
		return out, tool.Unavailable("the user shares no facts of the machine (tools.system_info in agent.toml); go on without them")
	}
	out.Output = strings.Join(lines, "\n")
	return out, nil
}
