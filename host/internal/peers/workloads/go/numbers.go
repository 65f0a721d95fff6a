package main

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"slices"
	"sort"
	"strconv"
)

// runMap computes a sum that does not depend on the order of keys, which is random.
func runMap() (sum uint64) {
	r := random(21)
	byNumber, byName := map[uint32]uint64{}, map[string]int{}
	for i := range 250_000 {
		byNumber[r.next()%50_000] += uint64(i)
		if i%4 == 0 {
			byName["key"+strconv.Itoa(r.below(5000))]++
		}
		if i%16 == 0 {
			delete(byNumber, r.next()%50_000)
		}
	}
	for k, v := range byNumber {
		sum += mix(uint64(k), v)
	}
	for k, v := range byName {
		sum += mix(uint64(len(k)), uint64(v))
	}
	return sum
}

func runMandel() (sum uint64) {
	const size = 600
	for y := range size {
		for x := range size {
			cr, ci := 2.5*float64(x)/size-2, 2.5*float64(y)/size-1.25
			var zr, zi float64
			n := 0
			for ; n < 200 && zr*zr+zi*zi < 4; n++ {
				zr, zi = zr*zr-zi*zi+cr, 2*zr*zi+ci
			}
			sum = mix(sum, uint64(n))
		}
	}
	return sum
}

type body struct{ x, y, z, vx, vy, vz, mass float64 }

func runNBody() (sum uint64) {
	r := random(33)
	bodies := make([]body, 5)
	for i := range bodies {
		b := &bodies[i]
		for _, f := range []*float64{&b.x, &b.y, &b.z} {
			*f = float64(r.below(2000)-1000) / 50
		}
		for _, f := range []*float64{&b.vx, &b.vy, &b.vz} {
			*f = float64(r.below(2000)-1000) / 1000
		}
		b.mass = float64(1+r.below(100)) / 1000
	}
	for range 500_000 {
		step(bodies, 0.001)
	}
	for _, b := range bodies {
		sum = mix(mix(sum, math.Float64bits(b.x)), math.Float64bits(b.vz))
	}
	return sum
}

func step(bodies []body, dt float64) {
	for i := range bodies {
		a := &bodies[i]
		for j := i + 1; j < len(bodies); j++ {
			b := &bodies[j]
			dx, dy, dz := a.x-b.x, a.y-b.y, a.z-b.z
			d2 := dx*dx + dy*dy + dz*dz + 0.01
			mag := dt / (d2 * math.Sqrt(d2))
			a.vx -= dx * b.mass * mag
			a.vy -= dy * b.mass * mag
			a.vz -= dz * b.mass * mag
			b.vx += dx * a.mass * mag
			b.vy += dy * a.mass * mag
			b.vz += dz * a.mass * mag
		}
	}
	for i := range bodies {
		b := &bodies[i]
		b.x += dt * b.vx
		b.y += dt * b.vy
		b.z += dt * b.vz
	}
}

func runSHA256() uint64 {
	buf := make([]byte, 1<<20)
	r := random(55)
	for i := range buf {
		buf[i] = byte(r.next())
	}
	var digest [sha256.Size]byte
	for range 6 {
		digest = sha256.Sum256(buf)
		copy(buf, digest[:])
	}
	return binary.LittleEndian.Uint64(digest[:])
}

func runSort() (sum uint64) {
	r := random(77)
	numbers := make([]int, 250_000)
	for i := range numbers {
		numbers[i] = int(r.next())
	}
	names := make([]string, 40_000)
	for i := range names {
		names[i] = strconv.Itoa(int(r.next()))
	}
	slices.Sort(numbers)
	sort.Slice(names, func(i, j int) bool { return names[i] < names[j] })
	for i := 0; i < len(numbers); i += 101 {
		sum = mix(sum, uint64(numbers[i]))
	}
	for i := 0; i < len(names); i += 101 {
		sum = mix(sum, uint64(names[i][0]))
	}
	return sum
}
