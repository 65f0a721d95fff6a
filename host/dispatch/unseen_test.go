package dispatch

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/tool"
)

// unseenWorld is a workspace with files, and with tools that read, write, and edit by text.
func unseenWorld(t *testing.T, opts policy.Options) (*world, *Dispatcher, *[]string) {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{"a.txt": "a\n", ".env": "KEY=1\n", "empty.txt": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(".env", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	opts.Mounts, opts.Project = []policy.Mount{{Host: dir, Write: true}}, dir
	w := newWorld(t, opts)
	spec := func(name, props string, files tool.Files, c tool.Content) tool.Spec {
		return tool.Spec{Content: &c, Capabilities: tool.Capabilities{Files: files}, Definition: tool.Definition{Name: name, Description: name,
			Parameters: json.RawMessage(`{"type":"object","properties":{` + props + `}}`)}}
	}
	catalog, err := tool.NewCatalog(map[*tool.Module]tool.Manifest{{Name: "m", Digest: "d", Origin: tool.OriginBuiltin}: {Name: "m", Tools: []tool.Spec{
		spec("file_read", `"path":{"type":"string"}`, tool.FilesRead, tool.Content{Path: "path"}),
		spec("file_write", `"path":{"type":"string"}`, tool.FilesWrite, tool.Content{Path: "path"}),
		spec("edit", `"path":{"type":"string"},"was":{"type":"string"}`, tool.FilesWrite, tool.Content{Path: "path", Hash: "was", Exact: true}),
		spec("lines", `"path":{"type":"string"},"was":{"type":"string"}`, tool.FilesWrite, tool.Content{Path: "path", Hash: "was", Lines: true}),
		spec("patch", `"patch":{"type":"string"},"was":{"type":"object"}`, tool.FilesWrite, tool.Content{Patch: "patch", Hash: "was", Exact: true}),
	}}})
	if err != nil {
		t.Fatal(err)
	}
	w.options.Catalog = catalog
	var ran []string
	w.run = func(_ context.Context, _ policy.Grant, _ *tool.Module, c tool.Call, _ func(tool.Progress)) (tool.Result, error) {
		ran = append(ran, c.Tool+" "+string(c.Args))
		hash := `"h1"`
		switch c.Tool {
		case "edit":
			if strings.Contains(string(c.Args), tool.Unseen) {
				hash = `""`
			}
		case "patch":
			hash = `{}`
		}
		return tool.Result{Output: json.RawMessage(`{"output":"","sha256":` + hash + `}`)}, nil
	}
	w.answer = yes(policy.ScopeOnce)
	w.changes = nil
	return w, New(w.options), &ran
}

func TestAnEditByTextNeedsNoReadThatNobodyWouldBeAskedAbout(t *testing.T) {
	const patch = `{"patch":"*** Begin Patch\n*** Update File: a.txt\n@@\n-a\n+b\n*** End Patch"}`
	for name, tt := range map[string]struct {
		opts  policy.Options
		calls []string
		ran   string // the last call as it ran; empty: it was refused
	}{
		"by text":                                         {calls: []string{`edit {"path":"a.txt"}`}, ran: `edit {"path":"a.txt","was":"unseen"}`},
		"of a file that is not there":                     {calls: []string{`edit {"path":"gone.txt"}`}, ran: `edit {"path":"gone.txt","was":"unseen"}`},
		"by a patch":                                      {calls: []string{`patch ` + patch}, ran: `patch ` + strings.TrimSuffix(patch, "}") + `,"was":{"a.txt":"unseen"}}`},
		"by line number":                                  {calls: []string{`lines {"path":"a.txt"}`}},
		"by line number, after one by text":               {calls: []string{`edit {"path":"a.txt"}`, `lines {"path":"a.txt"}`}},
		"by line number, after a patch":                   {calls: []string{`patch ` + patch, `lines {"path":"a.txt"}`}},
		"after a read":                                    {calls: []string{`file_read {"path":"a.txt"}`, `edit {"path":"a.txt"}`}, ran: `edit {"path":"a.txt","was":"h1"}`},
		"of what looks like a secret":                     {calls: []string{`edit {"path":".env"}`}},
		"of a link to it":                                 {calls: []string{`edit {"path":"link"}`}},
		"of a file outside":                               {calls: []string{`edit {"path":"../other.txt"}`}},
		"where reads are denied":                          {opts: policy.Options{Rules: []policy.Rule{denying(t, "file_read(path=a.txt)")}}, calls: []string{`edit {"path":"a.txt"}`}},
		"where reads are denied, by the model's own word": {opts: policy.Options{Rules: []policy.Rule{denying(t, "file_read(path=a.txt)")}}, calls: []string{`edit {"path":"a.txt","was":"unseen"}`}},
		"by a patch, too":                                 {opts: policy.Options{Rules: []policy.Rule{denying(t, "file_read(path=a.txt)")}}, calls: []string{`patch ` + strings.TrimSuffix(patch, "}") + `,"was":{"a.txt":"unseen"}}`}},
		"by line number, by the model's own word":         {calls: []string{`lines {"path":"a.txt","was":"unseen"}`}},
		"after a read, by the model's own word":           {calls: []string{`file_read {"path":"a.txt"}`, `edit {"path":"a.txt","was":"unseen"}`}, ran: `edit {"path":"a.txt","was":"h1"}`},
		"where other reads are denied":                    {opts: policy.Options{Rules: []policy.Rule{denying(t, "file_read(path=b.txt)")}}, calls: []string{`edit {"path":"a.txt"}`}, ran: `edit {"path":"a.txt","was":"unseen"}`},
		"where no file may be read at all":                {opts: policy.Options{Rules: []policy.Rule{denying(t, "file_read")}}, calls: []string{`edit {"path":"a.txt"}`}},
		"where everything is asked about":                 {opts: policy.Options{ConfirmAll: true}, calls: []string{`edit {"path":"a.txt"}`}},
	} {
		t.Run(name, func(t *testing.T) {
			w, d, ran := unseenWorld(t, tt.opts)
			var last tool.Result
			for i, c := range tt.calls {
				*ran = nil
				name, args, _ := strings.Cut(c, " ")
				call := numbered(i+1, name, args)
				call.Cwd = w.options.Policy.Mounts()[0].Host
				var err error
				if last, err = d.Call(t.Context(), call); err != nil {
					t.Fatal(err)
				}
			}
			refused := last.Err != nil && last.Err.Code == tool.CodeUnseen
			if got := strings.Join(*ran, "\n"); got != tt.ran || refused != (tt.ran == "") {
				t.Errorf("ran %s, want %s; %+v", got, tt.ran, last.Err)
			}
		})
	}
}

func denying(t *testing.T, text string) policy.Rule {
	t.Helper()
	r, err := policy.ParseDenial(text)
	if err != nil {
		t.Fatal(err)
	}
	r.Source = policy.SourceUser
	return r
}

// Whoever is asked about a call that replaces a file learns that the model does not know what is
// in it.
func TestABlindWriteSaysSo(t *testing.T) {
	for name, tt := range map[string]struct {
		calls  []string
		caller tool.Caller
		warned bool
	}{
		"over a file that nobody read":    {[]string{`file_write {"path":"a.txt"}`}, tool.CallerAgent, true},
		"by another name":                 {[]string{`file_write {"path":"./x/../a.txt"}`}, tool.CallerAgent, true},
		"over one that looks secret":      {[]string{`file_write {"path":".env"}`}, tool.CallerAgent, true},
		"after a read":                    {[]string{`file_read {"path":"a.txt"}`, `file_write {"path":"a.txt"}`}, tool.CallerAgent, false},
		"after the read of another":       {[]string{`file_read {"path":"empty.txt"}`, `file_write {"path":"a.txt"}`}, tool.CallerAgent, true},
		"after an edit by text":           {[]string{`edit {"path":"a.txt"}`, `file_write {"path":"a.txt"}`}, tool.CallerAgent, true},
		"after it was written":            {[]string{`file_write {"path":"a.txt"}`, `file_write {"path":"a.txt"}`}, tool.CallerAgent, false},
		"a new file":                      {[]string{`file_write {"path":"new.txt"}`}, tool.CallerAgent, false},
		"over an empty file":              {[]string{`file_write {"path":"empty.txt"}`}, tool.CallerAgent, false},
		"by a person":                     {[]string{`file_write {"path":"a.txt"}`}, tool.CallerPerson, false},
		"an edit, which shows what it is": {[]string{`edit {"path":"a.txt"}`}, tool.CallerAgent, false},
	} {
		t.Run(name, func(t *testing.T) {
			w, d, _ := unseenWorld(t, policy.Options{})
			w.changes = []tool.Change{aFile("a.txt", "b\n")}
			var warning string
			w.answer = func(ctx context.Context, q policy.Question) (policy.Answer, error) {
				warning = q.Warning
				return yes(policy.ScopeOnce)(ctx, q)
			}
			for i, c := range tt.calls {
				name, args, _ := strings.Cut(c, " ")
				call := numbered(i+1, name, args)
				call.Caller, call.Cwd = tt.caller, w.options.Policy.Mounts()[0].Host
				warning = ""
				if r, err := d.Call(t.Context(), call); err != nil || r.Err != nil {
					t.Fatal(r.Err, err)
				}
			}
			if warned := strings.Contains(warning, "no file tool has read"); warned != tt.warned {
				t.Errorf("the warning is %q", warning)
			}
		})
	}
}
