package hostmod

import (
	"crypto/sha1"
	"crypto/sha256"
	"hash"
	"slices"
)

const (
	// digestPiece is the number of bytes that are hashed before other guests get their turn,
	// and before the host checks whether the guest has to stop.
	digestPiece = 1 << 20
	// costDigest is the cost of a byte in units of fuel: the nanoseconds that hashing takes on
	// a processor without special instructions.
	costDigest = 2
)

// digestSHA256 is digest.sha256. Parameters: data (pointer, length), result pointer.
func digestSHA256(c reply) error { return c.digest(sha256.New()) }

// digestSHA1 is digest.sha1. Parameters: data (pointer, length), result pointer.
func digestSHA1(c reply) error { return c.digest(sha1.New()) }

// digest hashes data in the guest's memory, without copying it. See RATIONALE, "Why does the
// host hash for a guest?".
func (c reply) digest(sum hash.Hash) error {
	data, err := c.mem.View("data", c.u32(0), c.u32(1))
	if err != nil {
		return err
	}
	for piece := range slices.Chunk(data, digestPiece) {
		if err := (payer{c.account}).Pay(costDigest * uint64(len(piece))); err != nil {
			return err
		}
		sum.Write(piece)
	}
	r := c.record()
	r.bytes(c.guest, c.payload, sum.Sum(nil))
	return c.put(r)
}

var digestResult = layout{size: 8, align: 4} // of a list<u8>
