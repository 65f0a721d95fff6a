package config

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/config/keys"
)

var update = flag.Bool("update", false, "rewrite agent.toml at the root of the repository")

const annotatedPath = "../../agent.toml"

func TestTheAnnotatedFileIsUpToDate(t *testing.T) {
	if *update {
		if err := os.WriteFile(annotatedPath, []byte(Annotated()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(annotatedPath)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Annotated(), string(got)); diff != "" {
		t.Errorf("agent.toml is stale; run go test ./host/config -update (-want +got):\n%s", diff)
	}
}

func TestTheAnnotatedFileSetsNothing(t *testing.T) {
	f, err := Load(annotatedPath, User)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.settings) > 0 {
		t.Errorf("it sets %v", f.settings)
	}
}

func TestTheAnnotatedFileShowsEveryDefault(t *testing.T) {
	// What is commented out is the default: uncommented, it changes nothing.
	var src strings.Builder
	fixed, _, _ := strings.Cut(Annotated(), "\n#[profiles.work]")
	for line := range strings.Lines(fixed) {
		if len(line) > 1 && line[0] == '#' && line[1] != ' ' {
			line = strings.TrimPrefix(line, "#")
		}
		src.WriteString(line)
	}
	f, err := Parse("agent.toml", User, []byte(src.String()))
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range Keys() {
		if _, ok := f.settings[k]; !ok {
			t.Errorf("%s is not shown", k)
		}
	}
	c, _ := mustMerge(t, f, nil, nil)
	if diff := cmp.Diff(Default(), c, ignoreSources); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
}

func TestValuesSurviveBeingWritten(t *testing.T) {
	for _, s := range samples {
		want := Default()
		s.want(&want)
		k := find(s.key)
		f, err := Parse("a", User, []byte(s.key+" = "+keys.Format(k.get(&want))))
		if err != nil {
			t.Errorf("%s: %v", s.key, err)
			continue
		}
		got, _ := mustMerge(t, f, nil, nil)
		if diff := cmp.Diff(want, got, ignoreSources); diff != "" {
			t.Errorf("%s (-want +got):\n%s", s.key, diff)
		}
	}
}
