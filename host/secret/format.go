package secret

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/crypto/argon2"
	"golang.org/x/crypto/chacha20poly1305"
)

const (
	magic       = "stockade secrets v1\n"
	headerBytes = 82

	// maxRecordBytes is how large a record can be as JSON, in which a character
	// can take six bytes; what can be written can be read.
	maxRecordBytes = 32 << 10
	maxFileBytes   = headerBytes + maxRecords*maxRecordBytes
)

// header is the beginning of a file, its numbers in big-endian order. Behind it
// is what XChaCha20-Poly1305 makes of the records; the header is authenticated
// with them.
type header struct {
	Magic  [len(magic)]byte // with the version of the format
	Origin origin
	Proof  [8]byte // of the key, to tell a wrong one from a damaged file
	Length uint32  // bytes that follow the header
	Nonce  [chacha20poly1305.NonceSizeX]byte
}

// origin says where a key comes from. The rest says how a passphrase becomes one,
// by argon2id, and is zero with a key file. The values that are written are the
// second choice of RFC 9106, for machines with little memory to spare.
type origin struct {
	Source    uint8
	Passes    uint32
	MemoryKiB uint32
	Lanes     uint8
	Salt      [16]byte
}

const (
	sourceKeyFile    = 1
	sourcePassphrase = 2
)

// Errors of reading the file.
var (
	// ErrWrongKey: the passphrase, or the key file, is not the one that the
	// file was written with.
	ErrWrongKey = errors.New("wrong key")
	// ErrDamaged: the file is cut short or was changed; nothing of it is used.
	ErrDamaged = errors.New("damaged")
	// ErrFormat: the file is not one of ours, or of a newer version.
	ErrFormat = errors.New("not a file of secrets that this version reads")
)

func newPassphraseOrigin() origin {
	o := origin{Source: sourcePassphrase, Passes: 3, MemoryKiB: 64 << 10, Lanes: 4}
	rand.Read(o.Salt[:]) // never fails: crypto/rand ends the process instead
	return o
}

// Bounds on what a file may ask for: it is read before it is authenticated, and
// nothing can end the derivation of a key.
const (
	maxPasses    = 16
	maxMemoryKiB = 256 << 10
)

func (o origin) key(passphrase []byte) []byte {
	return argon2.IDKey(passphrase, o.Salt[:], o.Passes, o.MemoryKiB, o.Lanes, chacha20poly1305.KeySize)
}

func parseHeader(data []byte) (header, error) {
	var h header
	switch {
	case len(data) == 0:
		return h, fmt.Errorf("%w: it is empty", ErrDamaged)
	case !bytes.HasPrefix(data, []byte(magic[:min(len(magic), len(data))])):
		return h, ErrFormat
	case len(data) < headerBytes+chacha20poly1305.Overhead:
		return h, fmt.Errorf("%w: it ends after %d bytes", ErrDamaged, len(data))
	}
	if _, err := binary.Decode(data, binary.BigEndian, &h); err != nil {
		return h, err
	}
	switch have, o, length := uint64(len(data)-headerBytes), h.Origin, uint64(h.Length); {
	case o.Source != sourceKeyFile && o.Source != sourcePassphrase:
		return h, fmt.Errorf("%w: its key comes from %d", ErrFormat, o.Source)
	case o.Source == sourcePassphrase && (o.Passes == 0 || o.Passes > maxPasses || o.Lanes == 0 ||
		o.MemoryKiB < 8*uint32(o.Lanes) || o.MemoryKiB > maxMemoryKiB):
		return h, fmt.Errorf("%w: what it says of its passphrase is out of bounds", ErrDamaged)
	case have < length:
		return h, fmt.Errorf("%w: it is cut short, %d of %d bytes are there", ErrDamaged, have, length)
	case have > length:
		return h, fmt.Errorf("%w: there are %d bytes behind its end", ErrDamaged, have-length)
	}
	return h, nil
}

// proof identifies a key without giving anything of it away.
func proof(key []byte) [8]byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("stockade secrets: proof of the key"))
	return [8]byte(mac.Sum(nil))
}

// seal makes a file of a plaintext.
func seal(key []byte, o origin, plaintext []byte) ([]byte, error) {
	aead, err := chacha20poly1305.NewX(key)
	if err != nil {
		return nil, err
	}
	h := header{Magic: [len(magic)]byte([]byte(magic)), Origin: o, Proof: proof(key), Length: uint32(len(plaintext) + aead.Overhead())}
	rand.Read(h.Nonce[:])
	out, err := binary.Append(nil, binary.BigEndian, h)
	if err != nil {
		return nil, err
	}
	return aead.Seal(out, h.Nonce[:], plaintext, out), nil
}

// open returns the plaintext of a file whose header has been parsed.
func open(key []byte, h header, data []byte) ([]byte, error) {
	if want := proof(key); !hmac.Equal(want[:], h.Proof[:]) {
		return nil, ErrWrongKey
	}
	aead, err := chacha20poly1305.NewX(key)
	if err != nil {
		return nil, err
	}
	plaintext, err := aead.Open(nil, h.Nonce[:], data[headerBytes:], data[:headerBytes])
	if err != nil {
		return nil, fmt.Errorf("%w: it was changed after it was written", ErrDamaged)
	}
	return plaintext, nil
}
