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

// The file of secrets is a header, then what XChaCha20-Poly1305 makes of the
// records. The header is authenticated with them.
//
//	offset  bytes
//	     0     20  magic, with the version of the format
//	    20      1  where the key comes from: 1 a key file, 2 a passphrase
//	    21      4  passes of argon2id      (0 with a key file)
//	    25      4  memory of argon2id, KiB (0 with a key file)
//	    29      1  lanes of argon2id       (0 with a key file)
//	    30     16  salt of argon2id        (zero with a key file)
//	    46      8  proof of the key, to tell a wrong one from a damaged file
//	    54      4  bytes that follow the header
//	    58     24  nonce
const (
	magic       = "stockade secrets v1\n"
	headerBytes = 82
	saltBytes   = 16

	atSource, atPasses, atMemory, atLanes, atSalt, atProof, atLength, atNonce = 20, 21, 25, 29, 30, 46, 54, 58

	sourceKeyFile    = 1
	sourcePassphrase = 2

	// maxRecordBytes is how large a record can be as JSON, in which a character
	// can take six bytes; what can be written can be read.
	maxRecordBytes = 32 << 10
	maxFileBytes   = headerBytes + maxRecords*maxRecordBytes
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

// kdf says how a passphrase becomes a key. The values that are written are the
// second choice of RFC 9106, for machines with little memory to spare.
type kdf struct {
	passes, memoryKiB uint32
	lanes             uint8
	salt              [saltBytes]byte
}

func newKDF() kdf {
	k := kdf{passes: 3, memoryKiB: 64 << 10, lanes: 4}
	rand.Read(k.salt[:]) // never fails: crypto/rand ends the process instead
	return k
}

// Bounds on what a file may ask for: it is read before it is authenticated, and
// nothing can end the derivation of a key.
const (
	maxPasses    = 16
	maxMemoryKiB = 256 << 10
)

func (k kdf) key(passphrase []byte) []byte {
	return argon2.IDKey(passphrase, k.salt[:], k.passes, k.memoryKiB, k.lanes, chacha20poly1305.KeySize)
}

// header is the beginning of a file.
type header struct {
	raw    []byte
	source byte
	kdf    kdf
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
	h.raw, h.source = data[:headerBytes], data[atSource]
	h.kdf.passes = binary.BigEndian.Uint32(data[atPasses:])
	h.kdf.memoryKiB = binary.BigEndian.Uint32(data[atMemory:])
	h.kdf.lanes = data[atLanes]
	copy(h.kdf.salt[:], data[atSalt:])
	length := binary.BigEndian.Uint32(data[atLength:])
	switch have := len(data) - headerBytes; {
	case h.source != sourceKeyFile && h.source != sourcePassphrase:
		return h, fmt.Errorf("%w: its key comes from %d", ErrFormat, h.source)
	case h.source == sourcePassphrase && (h.kdf.passes == 0 || h.kdf.passes > maxPasses || h.kdf.lanes == 0 ||
		h.kdf.memoryKiB < 8*uint32(h.kdf.lanes) || h.kdf.memoryKiB > maxMemoryKiB):
		return h, fmt.Errorf("%w: what it says of its passphrase is out of bounds", ErrDamaged)
	case uint64(have) < uint64(length):
		return h, fmt.Errorf("%w: it is cut short, %d of %d bytes are there", ErrDamaged, have, length)
	case uint64(have) > uint64(length):
		return h, fmt.Errorf("%w: there are %d bytes behind its end", ErrDamaged, uint64(have)-uint64(length))
	}
	return h, nil
}

// proof identifies a key without giving anything of it away.
func proof(key []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("stockade secrets: proof of the key"))
	return mac.Sum(nil)[:8]
}

// seal makes a file of a plaintext.
func seal(key []byte, source byte, k kdf, plaintext []byte) ([]byte, error) {
	aead, err := chacha20poly1305.NewX(key)
	if err != nil {
		return nil, err
	}
	out := make([]byte, headerBytes, headerBytes+len(plaintext)+aead.Overhead())
	copy(out, magic)
	out[atSource] = source
	if source == sourcePassphrase {
		binary.BigEndian.PutUint32(out[atPasses:], k.passes)
		binary.BigEndian.PutUint32(out[atMemory:], k.memoryKiB)
		out[atLanes] = k.lanes
		copy(out[atSalt:], k.salt[:])
	}
	copy(out[atProof:], proof(key))
	binary.BigEndian.PutUint32(out[atLength:], uint32(len(plaintext)+aead.Overhead()))
	nonce := out[atNonce:headerBytes]
	rand.Read(nonce)
	return aead.Seal(out, nonce, plaintext, out[:headerBytes]), nil
}

// open returns the plaintext of a file whose header has been parsed.
func open(key []byte, h header, data []byte) ([]byte, error) {
	if !hmac.Equal(proof(key), h.raw[atProof:atLength]) {
		return nil, ErrWrongKey
	}
	aead, err := chacha20poly1305.NewX(key)
	if err != nil {
		return nil, err
	}
	plaintext, err := aead.Open(nil, h.raw[atNonce:], data[headerBytes:], h.raw)
	if err != nil {
		return nil, fmt.Errorf("%w: it was changed after it was written", ErrDamaged)
	}
	return plaintext, nil
}
