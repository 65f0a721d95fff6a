package policyfile

import (
	"flag"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/config/keys"
	"github.com/stockade-dev/stockade/host/policy"
)

var update = flag.Bool("update", false, "rewrite policy.toml")

const samplePath = "policy.toml"

func TestTheSampleIsUpToDate(t *testing.T) {
	if *update {
		if err := os.WriteFile(samplePath, []byte(Sample()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(samplePath)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Sample(), string(got)); diff != "" {
		t.Errorf("policy.toml is stale; run make generate (-want +got):\n%s", diff)
	}
}

// uncommented is the sample with every key set.
func uncommented() string {
	var b strings.Builder
	for line := range strings.Lines(Sample()) {
		if len(line) > 1 && line[0] == '#' && line[1] != ' ' {
			line = line[1:]
		}
		b.WriteString(line)
	}
	return strings.ReplaceAll(b.String(), "\nrequired = false\n", "\nrequired = true\n")
}

func TestTheSampleSaysNothingUntilAKeyIsTakenIn(t *testing.T) {
	if _, _, err := parse("f", policy.SourceAdmin, []byte(Sample())); err == nil || !strings.Contains(err.Error(), "empty") {
		t.Errorf("got %v", err)
	}
	l, _, err := parse("f", policy.SourceAdmin, []byte(uncommented()))
	if err != nil {
		t.Fatal(err)
	}
	if said := l.Describe(); len(said) < 15 {
		t.Errorf("it says %v", said)
	}
}

// Every key changes what the layer says: none is parsed and unused.
func TestEveryKeyChangesTheCeiling(t *testing.T) {
	for _, k := range table {
		if strings.HasPrefix(k.Name, "rules[].") || k.Name == "audit.export" || k.Name == "audit.required" || k.Name == "network.proxy_resolves" {
			continue // they need others
		}
		value := map[string]string{
			"require_confirmation": "true", "modules.unsigned": "false", "modules.add": "false", "auto": "false", "bash.min_tier": "1", "tools.NAME.allow": "false",
		}[k.Name]
		if value == "" {
			value = k.Example
		}
		name := strings.NewReplacer("NAME", "file_read", "ARGUMENT", "path").Replace(k.Name)
		l, _, err := parse("f", policy.SourceAdmin, []byte(name+" = "+value+"\n"))
		if err != nil || len(l.Describe()) != 1 {
			t.Errorf("%s = %s: %v, %v", k.Name, value, l.Describe(), err)
		}
	}
	l, _, err := parse("f", policy.SourceAdmin, []byte("[audit]\nrequired = true\nexport = \"/x\"\n"))
	if err != nil || len(l.Ceiling.AuditExports) != 1 || l.Ceiling.AuditExports[0].Value != "/x" {
		t.Errorf("audit: %+v, %v", l, err)
	}
	l, _, err = parse("f", policy.SourceAdmin, []byte("[network]\nproxy = \"http://p.example\"\nproxy_resolves = true\n"))
	if err != nil || !l.Route.Proxy.Resolves || !strings.Contains(l.Describe()[0].Words, "gets names") {
		t.Errorf("proxy_resolves: %+v, %v", l, err)
	}
}

// The owner of a proxy or an authority can read the traffic: only the administrator may
// name one for others, and nobody else even an empty or equal value.
func TestOnlyTheAdministratorBindsARoute(t *testing.T) {
	for _, text := range []string{
		"proxy = \"http://p.example:3128\"", "proxy = \"\"", "proxy_resolves = true", "proxy_resolves = false", "ca_files = [\"/ca.pem\"]", "ca_files = []",
		"hosts = []\nproxy = \"http://p.example\"\nproxy_resolves = true\nca_files = [\"/ca.pem\"]",
	} {
		for _, source := range []policy.Source{policy.SourceUser, policy.SourceProject} {
			l, _, err := parse("f", source, []byte("[network]\n"+text+"\n"))
			if err == nil || !strings.Contains(err.Error(), "only the administrator") || l.Route.Proxy != nil || l.Route.CAFiles != nil {
				t.Errorf("%s, %s: %+v, %v", source, text, l, err)
			}
		}
	}
}

// P03 and P17: a doubtful entry is an error with an explanation.
func TestWhatIsDoubtfulIsRefused(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"nothing":                        {"", "empty"},
		"blanks and comments":            {"\n# nothing\n \n", "empty"},
		"no TOML":                        {"= =", "expected"},
		"JSON":                           {`{"tools": {}}`, ""},
		"an unknown key":                 {"[tools.bash]\nalow = false\n", `unknown key "tools.bash.alow"`},
		"an unknown table":               {"[tool.bash]\nallow = false\n", "unknown key"},
		"a key twice":                    {"[bash]\nmin_tier = 1\nmin_tier = 0\n", ""},
		"a type":                         {"[tools.bash]\nallow = \"no\"\n", ""},
		"a tier":                         {"[bash]\nmin_tier = 4\n", "4 is out of range"},
		"a tool":                         {"[tools.'a b']\nallow = false\n", "not the name of a tool"},
		"a Cyrillic tool":                {"[tools.'re\u0430d_file']\nallow = false\n", "not the name of a tool"},
		"no calls":                       {"[tools.ls]\ncalls = 0\n", "0 is out of range; write a whole number from 1"},
		"a limit":                        {"[limits]\ntool_timeuot = \"3s\"\n", "did you mean"},
		"a preference as a limit":        {"[limits.model]\nname = \"x\"\n", `unknown key "limits.model.name"`},
		"a limit of no range":            {"[limits]\ntool_timeout = \"-3s\"\n", "out of range"},
		"a path in the style of others":  {"[tools.file_write.args.path]\nunder = [\"/w/{src,x}/**\"]\n", "only * (any letters of one name) and **"},
		"a rule in the style of others":  {"[[rules]]\neffect = \"deny\"\ntool = \"ls\"\nwhere = [\"path:path=/w/s?c\"]\n", "not supported"},
		"a directory in their style":     {"[files]\ndirectories = [\"/w/sr[ac]\"]\n", "not supported"},
		"a directory with a slash":       {"[files]\ndirectories = [\"/ws/\"]\n", "ends in a slash"},
		"a directory with dots":          {"[files]\ndirectories = [\"/ws/../etc\"]\n", "segment"},
		"a relative directory":           {"[files]\ndirectories = [\"work\"]\n", "not absolute"},
		"an empty directory":             {"[files]\ndirectories = [\"\"]\n", "empty"},
		"a hidden pattern":               {"[files]\nhidden = [\"/ws/*\"]\n", "without stars"},
		"any host":                       {"[network]\nhosts = [\"*\"]\n", "star"},
		"a top-level domain":             {"[network]\nhosts = [\"*.com\"]\n", "top-level"},
		"a host in the middle":           {"[network]\nhosts = [\"a.*.com\"]\n", "star"},
		"a proxy that is none":           {"[network]\nproxy = \"socks5://p.example\"\n", "not an http or https URL"},
		"a proxy with a password":        {"[network]\nproxy = \"http://u:p@p.example\"\n", "secrets are never in a file"},
		"no proxy":                       {"[network]\nproxy = \"\"\n", "it is empty"},
		"a proxy that is not there":      {"[network]\nproxy_resolves = true\n", "not set"},
		"no authorities":                 {"[network]\nca_files = []\n", "0 files"},
		"authorities of somebody's home": {"[network]\nca_files = [\"~/ca.pem\"]\n", "not an absolute path"},
		"authorities behind dots":        {"[network]\nca_files = [\"/etc/../tmp/ca.pem\"]\n", "not an absolute path"},
		"a registry with a protocol":     {"[modules]\nregistries = [\"https://ghcr.io\"]\n", "HOST or HOST/PATH"},
		"a registry behind dots":         {"[modules]\nregistries = [\"ghcr.io/a/../b\"]\n", "HOST or HOST/PATH"},
		"a registry with a slash":        {"[modules]\nregistries = [\"ghcr.io/\"]\n", "HOST or HOST/PATH"},
		"any registry":                   {"[modules]\nregistries = [\"*\"]\n", "HOST or HOST/PATH"},
		"a digest":                       {"[modules]\ndigests = [\"sha256:12\"]\n", "64 hexadecimal"},
		"an address with a key":          {"[models]\nbase_urls = [\"https://u:p@x/\"]\n", "not an address"},
		"an export without requirement":  {"[audit]\nexport = \"/x\"\n", "required"},
		"an argument that nobody bounds": {"[tools.ls.args.path]\n", "says nothing"},
		"a pattern":                      {"[tools.ls.args]\npath = {pattern = \"(\"}\n", "error parsing"},
		"an effect":                      {"[[rules]]\neffect = \"Deny\"\ntool = \"ls\"\n", "f:1: [[rules]] 1: effect: "},
		"a rule without a tool":          {"\n[[rules]]\neffect = \"deny\"\n", "f:2: [[rules]] 1: "},
		"an empty list of conditions":    {"[[rules]]\neffect = \"deny\"\ntool = \"ls\"\nwhere = []\n", "empty list"},
		"an empty list of risks":         {"[[rules]]\neffect = \"ask\"\ntool = \"ls\"\nrisk = []\n", "empty list"},
		"an empty list of callers":       {"[[rules]]\neffect = \"ask\"\ntool = \"ls\"\ncaller = []\n", "empty list"},
		"a caller":                       {"[[rules]]\neffect = \"ask\"\ntool = \"ls\"\ncaller = [\"model\"]\n", "caller"},
		"a risk":                         {"[[rules]]\neffect = \"ask\"\ntool = \"ls\"\nrisk = [\"low\"]\n", "risk"},
		"a condition":                    {"[[rules]]\neffect = \"ask\"\ntool = \"ls\"\nwhere = [\"glob:path=/x\"]\n", "no kind"},
		"an example that fails":          {"[[rules]]\neffect = \"deny\"\ntool = \"ls\"\nwhere = [\"path:path=/a/*\"]\nmatch = ['{\"path\":\"/a/b/c\"}']\n", "does not match its example"},
		"a counterexample that fails":    {"[[rules]]\neffect = \"deny\"\ntool = \"ls\"\nwhere = [\"path:path=/a/**\"]\nnot_match = ['{\"path\":\"/a/b/c\"}']\n", "it matches"},
		"an example that is no object":   {"[[rules]]\neffect = \"deny\"\ntool = \"ls\"\nmatch = ['[]']\n", "not a JSON object"},
		"an administrator that allows":   {"[[rules]]\neffect = \"allow\"\ntool = \"ls\"\n", "answers no questions"},
		"everything allowed":             {"[[rules]]\neffect = \"allow\"\ntool = \"*\"\n", "names its tool"},
		"a bomb":                         {"a = " + strings.Repeat("[", 10_000), "no value is nested"},
		"a novel":                        {"# " + strings.Repeat("x", keys.MaxFileBytes), "more than"},
		"no text":                        {"\xff\xfe", "UTF-8"},
	} {
		l, _, err := parse("f", policy.SourceAdmin, []byte(c.in))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
		if len(l.Describe()) > 0 {
			t.Errorf("%s: it says something all the same: %v", name, l.Describe())
		}
	}
}

func TestOnlyTheUsersFileAllows(t *testing.T) {
	text := []byte("[[rules]]\neffect = \"allow\"\ntool = \"file_write\"\nwhere = [\"path:path=/ws/**\"]\n")
	for source, want := range map[policy.Source]int{policy.SourceUser: 1, policy.SourceProject: 0} {
		l, warnings, err := parse("f", source, text)
		if err != nil || len(l.Answers) != want || (len(warnings) == 0) != (want == 1) || len(l.Ceiling.Rules) != 0 {
			t.Errorf("%s: %+v, %v, %v", source, l, warnings, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(uncommented())
	f.Add("[tools.bash]\nallow = false\n")
	f.Add("[[rules]]\neffect = \"deny\"\ntool = \"*\"\nwhere = [\"!words:command=ls ...\"]\n")
	f.Fuzz(func(t *testing.T, text string) {
		l, _, err := parse("f", policy.SourceAdmin, []byte(text))
		if err != nil {
			if len(l.Describe()) > 0 {
				t.Errorf("%v, and %v", err, l.Describe())
			}
			return
		}
		if len(l.Answers) > 0 {
			t.Errorf("an administrator answers %v", l.Answers)
		}
		if n := policy.Narrow(l.Ceiling, l.Ceiling); !reflect.DeepEqual(n, l.Ceiling) {
			t.Errorf("%+v is not itself", l.Ceiling)
		}
	})
}

// A project's file is anybody's: what it holds must not cost the memory of the
// machine.
func TestTheNumberOfPatternsIsBounded(t *testing.T) {
	one := "[[rules]]\neffect = 'deny'\ntool = 'a'\nwhere = ['!pattern:a=x{500}']\n"
	for n, want := range map[int]bool{maxPatterns: true, maxPatterns + 1: false} {
		if _, _, err := parse("p", policy.SourceProject, []byte(strings.Repeat(one, n))); (err == nil) != want {
			t.Errorf("%d rules: %v", n, err)
		}
	}
	if _, _, err := parse("p", policy.SourceProject, []byte("[tools.a.args.b]\npattern = 'x'\n"+strings.Repeat(one, maxPatterns))); err == nil {
		t.Error("the pattern of an argument is not counted")
	}
}
