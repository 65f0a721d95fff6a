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

	// maxRecordBytes limits a record as JSON, in which a character can take six bytes. Every
	// valid record fits.
	maxRecordBytes = 32 << 10
	maxFileBytes   = headerBytes + maxRecords*maxRecordBytes // a longer file is an error
)

// header is the beginning of a file. Numbers are big-endian. The records follow, encrypted with
// XChaCha20-Poly1305, which also authenticates the header.
type header struct {
	Magic  [len(magic)]byte // the constant magic, which includes the version of the format
	Origin origin
	Proof  [8]byte // identifies the key, to distinguish a wrong key from a damaged file
	Length uint32  // number of bytes after the header
	Nonce  [chacha20poly1305.NonceSizeX]byte
}

// origin is the source of a key. The fields after Source are the parameters of argon2id, which
// derives the key from a passphrase; they are zero for a key file. New files get the second
// choice of RFC 9106, for machines with little memory.
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

// Errors of opening a file.
var (
	// ErrWrongKey is returned if the file was written with another passphrase or key file.
	ErrWrongKey = errors.New("wrong key")
	// ErrDamaged is returned if the file was cut or changed. Nothing of it is used.
	ErrDamaged = errors.New("damaged")
	// ErrFormat is returned for a file of another program or of a newer version.
	ErrFormat = errors.New("not a file of secrets that this version reads")
)

func newPassphraseOrigin() origin {
	o := origin{Source: sourcePassphrase, Passes: 3, MemoryKiB: 64 << 10, Lanes: 4}
	rand.Read(o.Salt[:]) // never fails: crypto/rand ends the process instead
	return o
}

// Limits of the parameters in a file, which is damaged beyond them. They are read before the
// file is authenticated, and the derivation of a key cannot be cancelled.
const (
	maxPasses    = 16
	maxMemoryKiB = 256 << 10
)

// key derives a key from a passphrase.
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
		return h, fmt.Errorf("%w: its key has the unknown source %d", ErrFormat, o.Source)
	case o.Source == sourcePassphrase && (o.Passes == 0 || o.Passes > maxPasses || o.Lanes == 0 ||
		o.MemoryKiB < 8*uint32(o.Lanes) || o.MemoryKiB > maxMemoryKiB):
		return h, fmt.Errorf("%w: the parameters of its passphrase are out of range", ErrDamaged)
	case have < length:
		return h, fmt.Errorf("%w: it is cut short, %d of %d bytes are there", ErrDamaged, have, length)
	case have > length:
		return h, fmt.Errorf("%w: there are %d bytes behind its end", ErrDamaged, have-length)
	}
	return h, nil
}

// proof returns bytes that identify a key without revealing the key.
func proof(key []byte) [8]byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("stockade secrets: proof of the key"))
	return [8]byte(mac.Sum(nil))
}

// seal encrypts a plaintext and returns the content of the file.
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

// open decrypts the content of a file, whose header h has been parsed. The error wraps
// ErrWrongKey or ErrDamaged.
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
