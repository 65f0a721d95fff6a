package selftest

import (
	"context"
	"encoding/hex"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stockade-dev/stockade/host/internal/hosttest"
	"github.com/stockade-dev/stockade/host/selftest/machine"
	"github.com/stockade-dev/stockade/host/tool"
)

// proof is a target that lets attacks through, which the attacks have to detect.
type proof struct {
	name    string
	target  func(t *testing.T, real *Sandbox) Target
	endless bool // only our patience, which is short, stops the attack
	// kinds lists the kinds of the modules. Nil is the first kind for which an attack is
	// tried: the others run the same script.
	kinds   []Kind
	attacks string
}

// same returns one target for all attacks.
func same(t Target) func(*testing.T, *Sandbox) Target {
	return func(*testing.T, *Sandbox) Target { return t }
}

func weak(change func(*Guest)) func(*testing.T, *Sandbox) Target {
	return func(_ *testing.T, real *Sandbox) Target { return weakened(real, change) }
}

// copiedBytes is the latest copy made by the host.
var copiedBytes []byte

// shortPatience is the patience for attacks that nothing else stops. It is longer than
// they take on the real sandbox.
const shortPatience = 2 * deadline

func proofs() []proof {
	return append(jailProofs(), []proof{
		{name: "the directory above the workspace is mounted", target: weak(parentMounted), kinds: machine.Kinds, attacks: `
			dotdot-read dotdot-create dotdot-rename dotdot-remove sibling-prefix existence-oracle name-odd
			symlink-relative symlink-directory symlink-directory-write symlink-write symlink-truncate symlink-times symlink-chain
			symlink-target symlink-moved symlink-exchanged other-mount listed-above preopens`},
		{name: "everything is mounted with write", target: weak(allWritable), kinds: machine.Kinds, attacks: `
			read-only-create read-only-truncate read-only-write read-only-remove read-only-rename read-only-make
			read-only-times reader-writes nested-read-only`},
		{name: "nothing is masked", target: weak(unmasked), kinds: machine.Kinds, attacks: `masked-read masked-write masked-moved masked-link masked-hard-link masked-other-case masked-other-unicode`},
		{name: "a tool that was added has what others have", target: weak(func(g *Guest) { g.Allowance = nil }), kinds: machine.Kinds, attacks: `
			added-given-nothing added-reads-only added-reads-beside added-command added-store`},
		{name: "every module is the same", target: weak(func(g *Guest) { g.Code = machine.PlainModule(g.Kind) }), attacks: `store-of-another`},
		{name: "there is one session", target: weak(func(g *Guest) { g.Session, _, _ = strings.Cut(g.Session, " another") }), attacks: `store-of-another-session`},
		{name: "no limits", target: weak(unlimited), endless: true, attacks: `
			endless-loop endless-start endless-initialize endless-allocator call-tree fuel-of-call fuel-of-tool fuel-of-session
			fuel-of-bulk-memory fuel-of-files fuel-of-digests bulk-memory-tail random-flood yield-flood clock-flood host-call-flood sleep
			request-without-end block-churn large-minimum grow-beyond-limit memory-of-all-calls result-long log-flood`},
		{name: "every host is granted", target: weak(func(g *Guest) { g.Hosts = []string{"http://127.0.0.1:*"} }), attacks: `
			request-not-granted request-elsewhere request-redirected`},
		{name: "no limits, where it ends by itself", target: weak(unlimited), attacks: `blocks-of-all-calls output-long store-flood`},
		{name: "the bare engine, which believes a plugin", target: func(*testing.T, *Sandbox) Target { return &weakTarget{} }, kinds: plugin, attacks: `
			input-outside offsets-between message-long notice-flood asks-the-person keyring output-not-text failure-long secret-value configuration-of-host request-while-initializing
			input environment file-left changes-of-a-failure`},
		{name: "the bare engine, which believes a command", target: func(*testing.T, *Sandbox) Target { return &weakTarget{} }, kinds: command, attacks: `
			printed-flood printed-not-text printed-nested printed-many-values printed-and-failed
			input environment file-left changes-of-a-failure`},
		{name: "every command is approved", target: weak(approvesAll), attacks: `exec-not-granted exec-other-command`},
		{name: "the bare engine", target: func(*testing.T, *Sandbox) Target { return &weakTarget{} }, attacks: `
			dotdot-read dotdot-create dotdot-rename dotdot-remove sibling-prefix existence-oracle name-odd
			symlink-absolute symlink-relative symlink-directory symlink-directory-write symlink-write symlink-truncate symlink-times
			symlink-dangling symlink-chain symlink-proc symlink-device symlink-target symlink-made symlink-moved
			git-hook-planted own-configuration-planted secret-file-read
			hard-link-made hard-link-write read-only-create read-only-truncate read-only-write nothing-mounted-read nothing-mounted-write
			masked-read masked-write masked-moved masked-link symlink-exchanged descriptor-flood disk-quota rewrite-flood huge-file mount-replaced
			table-grow table-grow-slowly references
			result-not-utf8 error-long stdout-flood stderr-flood log-long progress-flood
			exec-not-granted exec-other-command exec-other-directory exec-while-initializing
			http-not-granted kv-not-granted kv-write-not-granted secret-not-granted search-not-granted
			file-left environment standard-input changes-of-a-failure`},
		{name: "one instance for all calls", target: func(*testing.T, *Sandbox) Target { return &weakTarget{reuseInstances: true} }, attacks: `
			memory-left global-left table-left memory-size-left grown-memory-left crash-left descriptor-left variable-left block-left`},
		{name: "all is done that is asked for", target: same(obligingTarget), attacks: `
			dotdot-beyond-root dotdot-from-directory absolute-path name-with-nul name-not-utf8 name-of-windows symlink-loop
			preopen-replaced named-pipe socket device block-device mounted-proc masked-mounted deep-directories name-too-long read-only-descriptor
			recursion mutual-recursion poll-flood
			data-outside load-outside load-behind-end store-outside fill-outside allocator-outside allocator-null
			locals-bomb many-locals locals-sum nested-blocks nested-loops loops-times-locals branches-bomb br-table-bomb large-function many-functions
			many-types many-globals many-exports wide-type data-segments table-minimum many-tables large-module
			not-a-module cut-short endless-number count-bomb invalid-code index-outside reserved-name reserved-import unknown-import
			wrong-signature imported-memory host-function-as-call wide-memory shared-memory two-memories compile-time
			result-100-mb result-structured-100-mb result-length-overflow result-text-outside result-outside result-at-the-end
			result-misaligned result-list-bomb result-list-overflow result-bad-variant result-bad-content result-bad-error error-outside
			json-broken json-not-a-number json-nested
			log-overflow log-length log-level progress-variant digest-outside exec-arguments-outside exec-arguments-bomb exec-argument-overflow
			result-pointer-outside result-pointer-overflow result-pointer-misaligned allocator-recursion wasi-pointers socket-accept
			imports-of-others host-function-as-tool described-arguments
			offsets-outside pieces-flood pieces-nested pieces-not-text block-huge block-overflow block-flood small-block-flood variable-flood output-100-mb output-nested output-taken-back
			descriptors-inherited exit exit-while-initializing crash`},
		{name: "nobody hears that the call is cancelled", target: same(targetFunc(func(ctx context.Context, g Guest) Outcome {
			g.OnProgress(tool.Progress{Level: "info"})
			return obligingTarget(context.WithoutCancel(ctx), g)
		})), attacks: `ignored-cancel moved-directory`},
		{name: "what is in the cache is believed", target: func(_ *testing.T, real *Sandbox) Target {
			var n atomic.Int32
			return targetFunc(func(ctx context.Context, g Guest) Outcome {
				if n.Add(1) == 1 {
					return real.Run(ctx, g)
				}
				return obligingTarget(ctx, g)
			})
		}, attacks: `compiled-code-changed compiled-code-of-others`},
		{name: "the memory of a crash is not given back", target: func(_ *testing.T, real *Sandbox) Target {
			var n atomic.Int32
			return targetFunc(func(ctx context.Context, g Guest) Outcome {
				if n.Add(1) > 2 {
					return Outcome{Result: tool.Failed(tool.CodeMemory, tool.InternalError, "probe needs more memory than is left")}
				}
				return real.Run(ctx, g)
			})
		}, attacks: `memory-kept blocks-kept`},
		{name: "the host copies all for each block", target: func(_ *testing.T, real *Sandbox) Target {
			return targetFunc(func(ctx context.Context, g Guest) Outcome {
				o := real.Run(ctx, g)
				for range 64 {
					copiedBytes = make([]byte, 18<<20)
				}
				return o
			})
		}, attacks: `blocks-copied`},
		{name: "what is read is what another call has stored", target: func(_ *testing.T, real *Sandbox) Target {
			return targetFunc(func(ctx context.Context, g Guest) Outcome {
				o := real.Run(ctx, g)
				if r, err := readReport(o.Result.Output); err == nil && g.OnProgress == nil {
					copy(r, le32(mark))
					o.Result.Output = tool.Text(hex.EncodeToString(r))
				}
				return o
			})
		}, attacks: `running-call`},
	}...)
}

// TestAnAttackThatGetsThroughFails: where a protection is missing, the attack must report
// that it got through, not that it could not be tried. In make test, each target lets
// through the first attack of each area and of each kind of module.
func TestAnAttackThatGetsThroughFails(t *testing.T) {
	attacks := map[string][]Attack{}
	for _, a := range Attacks() {
		attacks[a.Name] = append(attacks[a.Name], a)
	}
	real := realTarget(t)
	inMemory(t)
	for _, p := range proofs() {
		t.Run(p.name, func(t *testing.T) {
			var all []Attack
			for name := range strings.FieldsSeq(p.attacks) {
				of := attacks[name]
				if len(of) == 0 && len(specialFileAttacks()) > 0 {
					t.Errorf("there is no attack %q any more", name)
				}
				if p.kinds == nil {
					of = of[:min(1, len(of))]
				}
				for _, a := range of {
					if p.kinds == nil || slices.Contains(p.kinds, a.Kind) {
						all = append(all, a)
					}
				}
			}
			for _, a := range sample(all) {
				t.Run(a.dirName(), func(t *testing.T) {
					patience := DefaultPatience
					if p.endless { // so that compiling takes no time afterwards
						if r := one(t, real, a, patience); !r.Pass {
							t.Fatalf("the real sandbox does not stop it: %s", r.Detail)
						}
						patience = shortPatience
					}
					r := one(t, p.target(t, real), a, patience)
					if r.Pass {
						t.Errorf("it passed: %s; %s", r.Mechanism, r.Detail)
					}
					if strings.Contains(r.Detail, "could not be tried") || r.Detail == "" {
						t.Errorf("it did not find out that it got through: %s", r.Detail)
					}
				})
			}
		})
	}
}

// sample returns all attacks, or in make test the first of each area and kind of module.
func sample(all []Attack) (out []Attack) {
	seen := map[string]bool{}
	for _, a := range all {
		if what := string(a.Area) + "/" + a.Kind.String(); hosttest.Whole() || !seen[what] {
			seen[what] = true
			out = append(out, a)
		}
	}
	return out
}

func one(t *testing.T, target Target, a Attack, patience time.Duration) Result {
	t.Helper()
	results, err := run(t.Context(), target, Options{Dir: scratchDir(t), Patience: patience}, []Attack{a})
	if err != nil {
		t.Fatal(err)
	}
	return results[0]
}

// TestEveryAttackHasACounterProof compares the list of attacks with the proofs.
func TestEveryAttackHasACounterProof(t *testing.T) {
	proved := map[string]bool{}
	for _, p := range proofs() {
		for name := range strings.FieldsSeq(p.attacks) {
			proved[name] = true
		}
	}
	kebab := regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	seen := map[string]bool{}
	for _, a := range Attacks() {
		if !proved[a.Name] {
			t.Errorf("%s: no target is known that lets it through, so nobody knows whether it can fail", a.Name)
		}
		if seen[a.dirName()] || !kebab.MatchString(a.Name) {
			t.Errorf("%s is not a name, or two attacks have it", a.Name)
		}
		if seen[a.dirName()] = true; !strings.HasSuffix(a.Description, ".") || strings.Count(a.Description, ". ") > 0 {
			t.Errorf("%s: %q is not one sentence", a.Name, a.Description)
		}
	}
	if len(seen) < 60 {
		t.Errorf("there are only %d attacks", len(seen))
	}
}
