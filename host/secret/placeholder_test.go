package secret

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/services"
	"github.com/stockade-dev/stockade/host/tool"
)

// shelf holds records by name, in place of a vault.
type shelf map[string]Record

func (s shelf) Get(_ context.Context, name string) (Record, error) {
	if r, ok := s[name]; ok {
		return r, nil
	}
	return Record{}, fmt.Errorf("%q: %w", name, ErrNotFound)
}

const value = "s3cr3t-value"

func bound(name, header string, hosts ...string) Record {
	return Record{Info{Name: name, Hosts: hosts, Header: header}, NewValue(value)}
}

// call returns a table with one secret, and a placeholder of that secret.
func call(t *testing.T, asked tool.Secret, r Record) (*Table, string) {
	t.Helper()
	table := NewTable([]tool.Secret{asked}, shelf{r.Name: r}.Get)
	p, err := table.Placeholder(t.Context(), asked.Name)
	if err != nil {
		t.Fatal(err)
	}
	return table, p
}

func TestPlaceholders(t *testing.T) {
	table := NewTable([]tool.Secret{{Name: "TOKEN"}, {Name: "UNSET"}}, shelf{"TOKEN": bound("TOKEN", ""), "OTHER": bound("OTHER", "")}.Get)
	seen := map[string]bool{}
	for range 100 {
		p, err := table.Placeholder(t.Context(), "TOKEN")
		if err != nil || !strings.HasPrefix(p, prefix) || len(p) != len(prefix)+placeholderRandomLen || seen[p] {
			t.Fatalf("%q, %v", p, err)
		}
		clean(t, "a placeholder", p, value, "TOKEN")
		seen[p] = true
	}
	if _, err := table.Placeholder(t.Context(), "OTHER"); services.KindOf(err) != services.Denied {
		t.Errorf("one that is not granted: %v", err)
	}
	if _, err := table.Placeholder(t.Context(), "UNSET"); services.KindOf(err) != services.NotFound {
		t.Errorf("one that is not set: %v", err)
	}
	var err error
	for range maxPlaceholders {
		_, err = table.Placeholder(t.Context(), "TOKEN")
	}
	if services.KindOf(err) != services.Denied {
		t.Errorf("there is no end of placeholders: %v", err)
	}
	if _, err := NewTable(nil, shelf{"TOKEN": bound("TOKEN", "")}.Get).Placeholder(t.Context(), "TOKEN"); services.KindOf(err) != services.Denied {
		t.Errorf("a call without secrets: %v", err)
	}
}

// TestWhereAValueGoes combines each binding by the person and by the tool with each host
// and header.
func TestWhereAValueGoes(t *testing.T) {
	const a, b, port = "a.example.com", "b.example.com", "a.example.com:8443"
	for _, tt := range []struct {
		what    string
		asked   tool.Secret
		record  Record
		hosts   []string // where it goes
		header  string
		refused bool
	}{
		{what: "bound by the person", record: bound("T", "X-Key", a), hosts: []string{a}, header: "X-Key"},
		{what: "to two hosts", record: bound("T", "", a, b), hosts: []string{a, b}, header: "Authorization"},
		{what: "with a port", record: bound("T", "", port), hosts: []string{port}, header: "Authorization"},
		{what: "by the tool", asked: tool.Secret{Hosts: []string{b}, Header: "X-Key"}, record: bound("T", ""), hosts: []string{b}, header: "X-Key"},
		{what: "by both", asked: tool.Secret{Hosts: []string{a, b}}, record: bound("T", "", b, port), hosts: []string{b}, header: "Authorization"},
		{what: "by nobody", record: bound("T", ""), hosts: nil, header: "Authorization"},
		{what: "headers in another case", asked: tool.Secret{Header: "x-key"}, record: bound("T", "X-Key", a), hosts: []string{a}, header: "X-Key"},
		{what: "hosts that do not meet", asked: tool.Secret{Hosts: []string{a}}, record: bound("T", "", b), refused: true},
		{what: "headers that do not meet", asked: tool.Secret{Header: "X-Other"}, record: bound("T", "X-Key", a), refused: true},
	} {
		tt.asked.Name = "T"
		table := NewTable([]tool.Secret{tt.asked}, shelf{"T": tt.record}.Get)
		p, err := table.Placeholder(t.Context(), "T")
		if tt.refused {
			if services.KindOf(err) != services.Denied {
				t.Errorf("%s: %v", tt.what, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, host := range []string{a, b, port, "example.com", "a.example.com.evil.com", "evil-a.example.com", "A.example.com", "a.example.com.", "a.example.com:443", "", "*"} {
			for _, header := range []string{"Authorization", "AUTHORIZATION", "X-Key", "X-Key2", "Cookie", ""} {
				got, err := table.header(host, header, p)
				goes := strings.EqualFold(header, tt.header)
				found := false
				for _, h := range tt.hosts {
					found = found || h == host
				}
				if goes = goes && found; goes {
					if err != nil || got != value {
						t.Errorf("%s, to %q in %q: %q, %v", tt.what, host, header, got, err)
					}
					continue
				}
				if !errors.Is(err, errMisplaced) || got != "" {
					t.Errorf("%s, to %q in %q: %q, %v", tt.what, host, header, got, err)
				}
				clean(t, "the error", fmt.Sprint(err), value)
			}
		}
	}
}

func TestHeadersWithAndWithoutPlaceholders(t *testing.T) {
	table, p := call(t, tool.Secret{Name: "T"}, bound("T", "", "h.example"))
	_, foreign := call(t, tool.Secret{Name: "T"}, bound("T", "", "h.example"))
	for _, tt := range []struct{ in, want string }{
		{"", ""}, {"text/html", "text/html"}, {"stockade-secre", "stockade-secre"}, {p, value},
		{"Bearer " + p, "Bearer " + value}, {"bearer " + p, "bearer " + value}, {"Basic " + p, "Basic " + value}, {"token " + p, "token " + value},
	} {
		if got, err := table.header("h.example", "authorization", tt.in); err != nil || got != tt.want {
			t.Errorf("%q: %q, %v", tt.in, got, err)
		}
	}
	for what, in := range map[string]string{
		"of another call": foreign, "invented": prefix + strings.Repeat("a", placeholderRandomLen), "cut short": p[:len(p)-1], "the prefix": prefix,
		"a good one before a bad one": p + foreign, "a bad one before a good one": foreign + p, "another case": prefix + strings.ToUpper(p[len(prefix):]),
		// With each of these the guest could choose which part of the value a server repeats.
		"behind other text": "a" + p, "before other text": p + "b", "twice": p + p, "in a list": p + ", " + p, "behind a blank": " " + p, "before a blank": p + " ",
		"behind another scheme": "Digest " + p, "behind a long scheme": strings.Repeat("Bearer", 6) + " " + p, "behind two schemes": "Bearer Bearer " + p,
		"behind two blanks": "Bearer  " + p, "behind a tab": "Bearer\t" + p, "behind a scheme alone": "Bearer" + p, "before a parameter": "Bearer " + p + ";a=b", "behind a cookie's name": "session=" + p,
	} {
		got, err := table.header("h.example", "Authorization", in)
		if !errors.Is(err, errMisplaced) || got != "" {
			t.Errorf("%s: %q, %v", what, got, err)
		}
		clean(t, what, fmt.Sprint(err), value)
	}
	// A scheme is allowed only in Authorization.
	table, p = call(t, tool.Secret{Name: "T"}, bound("T", "X-Key", "h.example"))
	if got, err := table.header("h.example", "X-Key", "Bearer "+p); !errors.Is(err, errMisplaced) || got != "" {
		t.Errorf("a scheme in another header: %q, %v", got, err)
	}
	// A value is never treated as a placeholder, and cannot end the header.
	for _, evil := range []string{"abcd\r\nHost: evil", "abcd\nX: y", "abcd\x7f", prefix + "abcd"} {
		r := bound("T", "", "h.example")
		r.Value = NewValue(evil)
		table, p := call(t, tool.Secret{Name: "T"}, r)
		got, err := table.header("h.example", "Authorization", p)
		if strings.HasPrefix(evil, prefix) {
			if got != evil || err != nil {
				t.Errorf("%q: %q, %v", evil, got, err)
			}
		} else if !errors.Is(err, errMisplaced) || got != "" {
			t.Errorf("%q: %q, %v", evil, got, err)
		}
	}
}

func TestPlaceholdersElsewhereAreRefused(t *testing.T) {
	_, p := call(t, tool.Secret{Name: "T"}, bound("T", "", "h.example"))
	encoded := strings.ReplaceAll(p, "-", "%2D")
	for what, text := range map[string]string{
		"URL": "https://h.example/?token=" + p, "path": "/" + p + "/x", "body": `{"token":"` + p + `"}`, "name of a header": "X-" + p,
		"encoded": "https://h.example/?token=" + encoded, "of nobody": prefix + "x", "behind a broken escape": "%zz" + p, "begin": prefix,
	} {
		if err := checkNoPlaceholder(what, text); !errors.Is(err, errMisplaced) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, text := range []string{"", "https://h.example/?a=b%20c", "%zz", "stockade", "\x00\xff"} {
		if err := checkNoPlaceholder("URL", text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestFill(t *testing.T) {
	table, p := call(t, tool.Secret{Name: "T"}, bound("T", "", "a.example"))
	parse := func(text string) *url.URL {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	headers := map[string][]string{"Accept": {"*/*"}, "Authorization": {"Bearer " + p}}
	got, err := table.Fill(parse("https://a.example/x"), headers, []byte("body"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string][]string{"Accept": {"*/*"}, "Authorization": {"Bearer " + value}}, got); diff != "" {
		t.Error(diff)
	}
	if headers["Authorization"][0] != "Bearer "+p {
		t.Error("the guest's headers were changed")
	}
	// Without a placeholder, any URL is allowed.
	if got, err := table.Fill(parse("http://other.example/"), map[string][]string{"Accept": {"*/*"}}, nil); err != nil || len(got) != 1 {
		t.Errorf("without a placeholder: %v, %v", got, err)
	}
	for name, c := range map[string]struct {
		url     string
		headers map[string][]string
		body    string
	}{
		"another host":         {"https://b.example/", headers, ""},
		"another port":         {"https://a.example:8443/", headers, ""},
		"in the clear":         {"http://a.example/", headers, ""},
		"in the URL":           {"https://a.example/?t=" + p, nil, ""},
		"in the URL, escaped":  {"https://a.example/?t=" + strings.ReplaceAll(p, "-", "%2D"), nil, ""},
		"in the body":          {"https://a.example/", nil, "x" + p},
		"in the name":          {"https://a.example/", map[string][]string{"X-" + p: {"1"}}, ""},
		"another header":       {"https://a.example/", map[string][]string{"X-Key": {p}}, ""},
		"the second of a name": {"https://a.example/", map[string][]string{"X-Key": {"1", p}}, ""},
		"one of nobody's":      {"https://a.example/", map[string][]string{"Authorization": {prefix + strings.Repeat("a", 26)}}, ""},
	} {
		got, err := table.Fill(parse(c.url), c.headers, []byte(c.body))
		if !errors.Is(err, errMisplaced) || got != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

func TestHost(t *testing.T) {
	for text, want := range map[string]string{
		"https://api.github.com/x": "api.github.com", "https://API.GitHub.com./": "api.github.com", "https://a.example:443": "a.example",
		"https://a.example:8443/": "a.example:8443", "https://a.example:80/": "a.example:80", "http://localhost:8080/": "localhost:8080", "http://127.0.0.1/": "127.0.0.1:80",
		"http://[::1]:9/": "[::1]:9", "https://[2001:db8::1]/": "[2001:db8::1]", "https://[2001:DB8:0::1]:444/": "[2001:db8::1]:444",
		"http://a.example/": "", "http://127.0.0.1.evil.example/": "", "http://localhost.evil/": "", "ftp://a.example/": "", "https://u:p@a.example/": "", "https://a.example@evil.example/": "",
		"http://localhost:443/": "", "http://[::1]:443/": "", "https:///x": "", "https://a..b/": "", "https://*.example/": "", "https://grüße.example/": "", "a.example": "",
	} {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		got, err := hostOf(u)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v, want %q", text, got, err, want)
		}
	}
}
