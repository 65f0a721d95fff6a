package secret

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/stockade-dev/stockade/host/redact"
	"github.com/stockade-dev/stockade/host/tool"
)

// Limits on what is kept. A shorter value could not be kept out of output.
const (
	MinValueBytes = redact.MinBytes
	MaxValueBytes = 4096
	maxRecords    = 256
)

// Errors that callers tell apart.
var (
	// ErrNotFound: the store holds no secret of that name.
	ErrNotFound = errors.New("no such secret")
	// ErrUnavailable: there is no such store on this machine, or it does not
	// answer.
	ErrUnavailable = errors.New("not available")
)

// DefaultHeader carries a secret if neither the person nor the tool names
// another header.
const DefaultHeader = "Authorization"

// Value is the text of a secret. However it is printed, it does not show:
// Reveal is the only way to it.
type Value struct{ text *string } // a pointer, because fmt looks into fields that nobody else sees

// NewValue returns a value.
func NewValue(text string) Value { return Value{&text} }

// Reveal returns the text.
func (v Value) Reveal() string {
	if v.text == nil {
		return ""
	}
	return *v.text
}

// String hides the value.
func (Value) String() string { return "[secret]" }

// GoString hides the value.
func (Value) GoString() string { return "[secret]" }

// MarshalJSON hides the value.
func (Value) MarshalJSON() ([]byte, error) { return []byte(`"[secret]"`), nil }

// Info is what may be shown of a secret.
type Info struct {
	Name string `json:"name"`
	// Hosts are those that the person bound it to; none means those that the
	// tool names and the person allows.
	Hosts []string `json:"hosts,omitempty"`
	// Header is the one header that may carry it; empty means the one that the
	// tool names, or else [DefaultHeader].
	Header string    `json:"header,omitempty"`
	SetAt  time.Time `json:"set"`
}

// Record is a secret with its value.
type Record struct {
	Info
	Value Value
}

// Check reports what is wrong with a record, and puts its hosts into their one
// form.
func (r *Record) Check() error {
	if !tool.ValidSecretName(r.Name) {
		return fmt.Errorf("the name %.80q is not 1 to 64 letters, digits, '_' or '-', the first a letter", r.Name)
	}
	if len(r.Hosts) > tool.MaxHostsPerSecret {
		return fmt.Errorf("%d hosts, more than the limit of %d", len(r.Hosts), tool.MaxHostsPerSecret)
	}
	hosts := make([]string, len(r.Hosts))
	for i, h := range r.Hosts {
		host, err := tool.NormalHost(h)
		if err != nil {
			return err
		}
		hosts[i] = host
	}
	slices.Sort(hosts)
	r.Hosts = slices.Compact(hosts)
	if r.Header != "" && !tool.ValidHeaderName(r.Header) {
		return fmt.Errorf("%.80q cannot be a header that carries a secret", r.Header)
	}
	switch text := r.Value.Reveal(); {
	case len(text) < MinValueBytes:
		return fmt.Errorf("the value has %d bytes; a value of less than %d could not be kept out of output and logs", len(text), MinValueBytes)
	case len(text) > MaxValueBytes:
		return fmt.Errorf("the value has %d bytes, more than the limit of %d", len(text), MaxValueBytes)
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return errors.New("the value is not text: it is not UTF-8, or holds a zero byte")
	}
	return nil
}

// Store keeps records. Implementations are safe for concurrent use, also by
// several processes at once, and pass the suite in suite_test.go.
type Store interface {
	// Name is "keyring" or "file".
	Name() string
	// Get returns a record; ErrNotFound if there is none, ErrUnavailable if the
	// store cannot be reached.
	Get(ctx context.Context, name string) (Record, error)
	// Set keeps a record in place of one of the same name. When it returns, the
	// record survives a crash; if it fails, the old one is still there.
	Set(ctx context.Context, r Record) error
	// Remove forgets a record. ErrNotFound.
	Remove(ctx context.Context, name string) error
	// Names lists the names, sorted, without reading a value where that is
	// possible.
	Names(ctx context.Context) ([]string, error)
}

// storedRecord is a record as stores write it.
type storedRecord struct {
	Info
	Value string `json:"value"`
}

func (r Record) stored() storedRecord { return storedRecord{r.Info, r.Value.Reveal()} }
func (s storedRecord) record() Record { return Record{s.Info, NewValue(s.Value)} }

// decodeRecord reads one record. Its errors hold nothing of what was decoded.
func decodeRecord(data []byte) (Record, error) {
	var s storedRecord
	if json.Unmarshal(data, &s) != nil {
		return Record{}, errors.New("what is kept is not a record of ours")
	}
	r := s.record()
	return r, r.Check()
}
