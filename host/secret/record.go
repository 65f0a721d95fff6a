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

// Limits of secrets; a record beyond them is an error.
const (
	MinValueBytes = redact.MinBytes // a shorter value could not be removed from output
	MaxValueBytes = 4096
	maxRecords    = 256 // records in a file
)

// Errors of stores.
var (
	// ErrNotFound is returned if the store holds no secret of that name.
	ErrNotFound = errors.New("no such secret")
	// ErrUnavailable is returned if this machine has no such store, or the store does not answer.
	ErrUnavailable = errors.New("not available")
)

// DefaultHeader is the header of a secret if neither the person nor the tool names a header.
const DefaultHeader = "Authorization"

// Value is the text of a secret. Printing it never shows the text; only Reveal returns it.
type Value struct{ text *string } // a pointer, because fmt prints unexported fields, too

// NewValue returns a value.
func NewValue(text string) Value { return Value{&text} }

// Reveal returns the text.
func (v Value) Reveal() string {
	if v.text == nil {
		return ""
	}
	return *v.text
}

// String returns a text without the value.
func (Value) String() string { return "[secret]" }

// GoString returns a text without the value.
func (Value) GoString() string { return "[secret]" }

// MarshalJSON returns a text without the value.
func (Value) MarshalJSON() ([]byte, error) { return []byte(`"[secret]"`), nil }

// Info is the part of a secret that may be shown.
type Info struct {
	Name string `json:"name"`
	// Hosts are the hosts that the person has bound the secret to. Empty: the hosts that the
	// tool names and the person allows.
	Hosts []string `json:"hosts,omitempty"`
	// Header is the only header that may carry the secret; empty: the header that the tool
	// names, or else [DefaultHeader].
	Header string    `json:"header,omitempty"`
	SetAt  time.Time `json:"set"`
}

// Record is a secret with its value.
type Record struct {
	Info
	Value Value
}

// Check returns an error if r is not valid. It puts the hosts into their normal form, sorted.
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

// Store keeps records. Implementations are safe for concurrent use, also by several processes, and
// pass the suite in suite_test.go.
type Store interface {
	// Name returns "keyring" or "file".
	Name() string
	// Get returns a record; ErrNotFound: there is none; ErrUnavailable: the store cannot be
	// reached.
	Get(ctx context.Context, name string) (Record, error)
	// Set stores a record, in place of one with the same name. When it returns, the record
	// survives a crash; after an error, the old record is still there.
	Set(ctx context.Context, r Record) error
	// Remove deletes a record; ErrNotFound if there is none.
	Remove(ctx context.Context, name string) error
	// Names returns the names, sorted. If possible, it reads no values.
	Names(ctx context.Context) ([]string, error)
}

// storedRecord is the form in which stores write a record.
type storedRecord struct {
	Info
	Value string `json:"value"`
}

func (r Record) stored() storedRecord { return storedRecord{r.Info, r.Value.Reveal()} }
func (s storedRecord) record() Record { return Record{s.Info, NewValue(s.Value)} }

// decodeRecord decodes one record. Its errors never quote the data.
func decodeRecord(data []byte) (Record, error) {
	var s storedRecord
	if json.Unmarshal(data, &s) != nil {
		return Record{}, errors.New("the stored data is not a record of stockade")
	}
	r := s.record()
	return r, r.Check()
}
