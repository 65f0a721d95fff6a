package fuel

import "github.com/stockade-dev/stockade/host/wasm"

// A guest must not run long between two checks of its counter. These limits bound its consumption
// in between, in units. Where a path would exceed one of the first three, a check is put.
const (
	maxPath  = 10_000 // cost of a path in one function without a check; maxTail if it catches exceptions
	maxLeaf  = 64     // cost of a path without a check in a leaf, or any function with none at its entry
	maxTail  = 128    // cost of a path that begins after a call: a deep recursion unwinds by such paths
	maxAhead = 4096   // units charged ahead (see tree.go); if more, each block charges its own cost
)

// block is a basic block: code that is executed from its start to its end unless it traps.
// Blocks are the edges of a graph whose nodes are ports. A port is a point between blocks,
// numbered from 0; ports that are the same point are joined.
type block struct {
	start        int32  // index of its first instruction
	in, out      int32  // the ports at its start and at its end
	weight       uint32 // cost of its instructions, in units
	freq         int32  // logarithm of the estimated number of runs, see freqLoop
	check        bool   // the block begins with a check of the counter, after its charge
	firstCheck   bool   // in a function that checks late: a path comes from the entry without a check
	assignedSpan span   // if it begins an innermost loop: range in flow.assigned of the loop's locals
	trap         bool   // the block ends with unreachable
	charge       int64  // units that the block subtracts from the counter at its start; may be negative
}

type span struct{ from, to int32 }

// outside is the port of all points outside of the function.
const outside = 0

type labelKind uint8

const (
	labelBlock labelKind = iota
	labelLoop
	labelIf
	labelElse
)

// label is a structured instruction, or the function, whose end has not been reached yet.
// Branches lead to its end, or to the start of a loop.
type label struct {
	kind     labelKind
	live     bool  // the start can be reached
	targeted bool  // a branch, or the code before the end, leads to the label
	caught   bool  // an exception can lead to the label
	port     int32 // the port to which branches lead
	loop     int32 // of a loop: its first block
	elsePort int32 // of an if: the port at which its else branch begins
	freq     int32 // value of flow.freq before the instruction
	path     path  // the paths that lead to the label, joined
	elsePath path  // of an if: the path to its else branch
}

// path describes the paths that lead to a point in the code. cost is the largest consumption
// of one of them since its last check, in units.
type path struct {
	cost           uint32
	tail           uint32 // largest consumption since the first call after the last check, plus 1; 0: no call
	uncheckedEntry bool   // if the function checks late: a path leads from its entry to here without a check
}

// join returns the path at a point where two paths meet: the larger of each value.
func (p path) join(q path) path {
	return path{max(p.cost, q.cost), max(p.tail, q.tail), p.uncheckedEntry || q.uncheckedEntry}
}

// Summands of block.freq: ten times as many runs in a loop, half in a branch of an if, four fifths
// after a br_if. 10 is a doubling.
const (
	freqLoop = 33
	freqIf   = -10
	freqBrIf = -3
)

// flow is the control flow of one function. It is reused for one function after another, so that
// nothing is allocated for each.
type flow struct {
	blocks []block
	parent []int32 // of each port: the port it is joined to (union-find)
	labels []label

	imported uint32 // number of imported functions
	// unchecked reports for each function that the module defines, by its index without the
	// imported ones, whether it can return without a check of the counter.
	unchecked   []bool
	hostInTable bool // an indirect call may reach a function of the host

	changesHiddenState bool // the function has an instruction of hiddenStateOps, not in dead code
	namesDataSegment   bool // an instruction, maybe in dead code, names a data segment
	hasCalls           bool
	catchesExceptions  bool
	longest            path // the largest values of any path in the function

	checksLate     bool   // the function checks before its first call or loop, and not at its entry
	exitsUnchecked bool   // the function checks late, and can return without a check
	uncheckedCost  uint32 // largest cost of a call that returns without a check

	assigned []uint32 // the locals that innermost loops assign, loop by loop
	inLoop   []int32  // for each local: first block of the loop that assigned it last; or -1
	loop     int32    // first block of the loop that may be innermost; or -1

	cur  int32 // block of the current instruction, or -1 in dead code
	freq int32 // freq of blocks that begin here
	path path  // the path to the current instruction
}

func (f *flow) newPort() int32 {
	p := int32(len(f.parent))
	f.parent = append(f.parent, p)
	return p
}

func (f *flow) find(p int32) int32 {
	for f.parent[p] != p {
		f.parent[p] = f.parent[f.parent[p]]
		p = f.parent[p]
	}
	return p
}

// join merges two ports. The port outside stays the root of its set.
func (f *flow) join(p, q int32) {
	p, q = f.find(p), f.find(q)
	if p < q {
		f.parent[q] = p
	} else {
		f.parent[p] = q
	}
}

// beginBlock starts a block at instruction start, after the port in.
func (f *flow) beginBlock(start int, in int32) {
	f.cur = int32(len(f.blocks))
	f.blocks = append(f.blocks, block{start: int32(start), in: in, out: f.newPort(), freq: f.freq})
}

// addCheck puts a check at the start of the current block.
func (f *flow) addCheck() {
	f.blocks[f.cur].check = true
	f.blocks[f.cur].firstCheck = f.path.uncheckedEntry
	f.path = path{}
}

// addLateCheck puts a check at the start of the current block if there was none since the entry,
// so that no path leads from one call to the next without a check.
func (f *flow) addLateCheck() {
	if f.path.uncheckedEntry {
		f.addCheck()
		f.path.cost = f.blocks[f.cur].weight
	}
}

// leaveFunction records the cost of a path that leaves the function without a check.
func (f *flow) leaveFunction() {
	if f.path.uncheckedEntry {
		f.exitsUnchecked, f.uncheckedCost = true, max(f.uncheckedCost, f.path.cost)
	}
}

// addCost adds the cost of instruction at to the current block. If the path would become too
// costly, it begins a new block with a check before.
func (f *flow) addCost(at int, cost uint32) {
	p := f.path
	p.cost += cost
	if p.tail > 0 {
		p.tail += cost
	}
	if p.cost > f.maxUnchecked() || p.tail > maxTail {
		f.insertCheck(at)
		p = path{cost: cost}
	}
	f.path = p
	f.blocks[f.cur].weight += cost
	f.longest = f.longest.join(p)
}

// maxUnchecked returns the limit on the cost of a path without a check. It is lower if exceptions
// are caught, because an exception leads to a path whose cost so far is unknown.
func (f *flow) maxUnchecked() uint32 {
	if f.catchesExceptions {
		return maxTail
	}
	return maxPath
}

// insertCheck puts a check before instruction at.
func (f *flow) insertCheck(at int) {
	if b := f.blocks[f.cur]; b.start != int32(at) {
		f.beginBlock(at, b.out)
	}
	f.addCheck()
}

// branch connects the current block with the label at a depth.
func (f *flow) branch(depth uint32) {
	l := &f.labels[len(f.labels)-1-int(depth)]
	f.join(f.blocks[f.cur].out, l.port)
	l.targeted = true
	l.path = l.path.join(f.path)
}

// analyze splits a function into blocks. With late, the function checks before its first call or
// loop, and not at its entry: a recursion ends at most of its calls.
func (f *flow) analyze(b *wasm.Body, late bool) {
	*f = flow{
		blocks: f.blocks[:0], parent: f.parent[:0], labels: f.labels[:0],
		assigned: f.assigned[:0], inLoop: f.inLoop[:0], loop: -1, hostInTable: f.hostInTable,
		imported: f.imported, unchecked: f.unchecked, checksLate: late, path: path{uncheckedEntry: late},
	}
	for range b.LocalTypes {
		f.inLoop = append(f.inLoop, -1)
	}
	f.newPort() // outside
	f.labels = append(f.labels, label{live: true, port: outside})
	f.beginBlock(0, outside)
	if locals := b.Params + b.Locals; locals >= CostFrameLocals {
		f.addCost(0, locals/CostFrameLocals)
	}
	for i := range b.Instrs {
		in := &b.Instrs[i]
		if !needsAnalysis[in.Op] {
			if f.cur >= 0 {
				f.addCost(i, Cost(in.Op))
			}
			continue
		}
		switch in.Op {
		case wasm.OpBlock, wasm.OpTryTable, wasm.OpLoop, wasm.OpIf:
			f.enter(b, i, in)
			continue
		case wasm.OpElse:
			f.enterElse(i)
			continue
		case wasm.OpEnd:
			f.end(i)
			continue
		}
		f.namesDataSegment = f.namesDataSegment || in.Op == wasm.OpMemoryInit || in.Op == wasm.OpDataDrop // in dead code, too
		if f.cur < 0 {
			continue
		}
		cost := Cost(in.Op)
		size, known := constantSize(b, i)
		switch {
		case known:
			cost += size >> CostBulkShift
		case (in.Op == wasm.OpCall || in.Op == wasm.OpReturnCall) && in.Arg < f.imported,
			(in.Op == wasm.OpCallIndirect || in.Op == wasm.OpReturnCallIndirect) && f.hostInTable:
			cost += CostHostCall
		}
		if callsFunction[in.Op] {
			f.addLateCheck()
		}
		f.changesHiddenState = f.changesHiddenState || hiddenStateOps[in.Op] != ""
		f.addCost(i, cost)
		switch in.Op {
		case wasm.OpLocalSet, wasm.OpLocalTee:
			if f.loop >= 0 && f.inLoop[in.Arg] != f.loop {
				f.inLoop[in.Arg] = f.loop
				f.assigned = append(f.assigned, in.Arg)
			}
		case wasm.OpBr:
			f.branch(in.Arg)
			f.cur = -1
		case wasm.OpBrIf:
			f.branch(in.Arg)
			f.freq += freqBrIf
			f.beginBlock(i+1, f.blocks[f.cur].out)
		case wasm.OpBrTable:
			for _, depth := range b.Labels[in.Arg : in.Arg+in.Arg2] {
				f.branch(depth)
			}
			f.cur = -1
		case wasm.OpReturn, wasm.OpReturnCall, wasm.OpReturnCallIndirect, wasm.OpThrow, wasm.OpThrowRef:
			f.hasCalls = f.hasCalls || in.Op == wasm.OpReturnCall || in.Op == wasm.OpReturnCallIndirect
			f.leaveFunction()
			f.join(f.blocks[f.cur].out, outside)
			f.cur = -1
		case wasm.OpUnreachable:
			f.blocks[f.cur].trap = true
			f.cur = -1
		case wasm.OpCall:
			f.noteCall(in.Arg < f.imported || f.unchecked[in.Arg-f.imported])
			if in.Arg < f.imported {
				f.checkAfterHost(i)
			}
		case wasm.OpCallIndirect:
			f.noteCall(true)
			if f.hostInTable {
				f.checkAfterHost(i)
			}
		case wasm.OpMemoryCopy, wasm.OpMemoryFill:
			if !known {
				f.addUncharged(maxInline >> CostBulkShift) // larger ones call a helper, which checks
			}
		case wasm.OpMemoryGrow, wasm.OpMemoryInit, wasm.OpTableInit, wasm.OpTableCopy, wasm.OpTableGrow, wasm.OpTableFill:
			f.path = path{tail: 1} // the helper checks
		}
	}
}

// isLeaf reports whether a function calls none, and no path without a check costs more than
// maxLeaf: it needs no check at its entry. A call of such a leaf counts as if it cost maxLeaf.
func (f *flow) isLeaf() bool { return !f.hasCalls && f.longest.cost <= maxLeaf }

// canCheckLate reports whether a function that was analyzed with late gains from late checks:
// some of its calls return without a check, at a cost of at most maxLeaf.
func (f *flow) canCheckLate() bool {
	return f.hasCalls && !f.catchesExceptions && f.exitsUnchecked && f.uncheckedCost <= maxLeaf
}

// A memory.copy or memory.fill is executed in place if its size is a small constant, or is small
// when it runs. A larger one, and any other bulk operation, calls a helper, which checks.
const (
	maxConstant  = 8 << 10 // largest constant size in bytes
	maxInlineLog = 10
	maxInline    = 1 << maxInlineLog // smallest size in bytes for which the helper is called
)

// constantSize returns the size in bytes of instruction i, if it is a memory.copy or memory.fill
// of a constant size up to maxConstant; else false.
func constantSize(b *wasm.Body, i int) (uint32, bool) {
	op := b.Instrs[i].Op
	if op != wasm.OpMemoryCopy && op != wasm.OpMemoryFill || i == 0 || b.Instrs[i-1].Op != wasm.OpI32Const {
		return 0, false
	}
	var n uint32
	code := b.Code[b.Instrs[i-1].Offset+1 : b.Instrs[i].Offset]
	for k, c := range code {
		n |= uint32(c&0x7f) << (7 * k)
	}
	if code[len(code)-1]&0x40 != 0 {
		return 0, false // a negative number, which counts as a large one
	}
	return n, n <= maxConstant
}

// checksFirst reports whether a function reaches a loop that checks, before it branches, calls
// or consumes more than maxLeaf, as most Go functions do.
func (f *flow) checksFirst(b *wasm.Body) bool {
	if len(f.blocks) < 2 || !f.blocks[1].check || f.blocks[0].weight > maxLeaf {
		return false
	}
	start := f.blocks[1].start
	for _, in := range b.Instrs[:start] {
		if in.Op >= wasm.OpCall && in.Op <= wasm.OpReturnCallIndirect {
			return false
		}
	}
	return start > 0 && b.Instrs[start-1].Op == wasm.OpLoop
}

// noteCall records a call. A callee that can return without a check (unchecked) may have consumed
// up to maxLeaf; after one that checks, only later code counts.
func (f *flow) noteCall(unchecked bool) {
	f.hasCalls = true
	if !unchecked {
		f.path = path{tail: 1}
		return
	}
	// In a block of its own the check would come after the call; it only matters that there is
	// one.
	f.path.tail = max(f.path.tail, 1)
	f.addUncharged(maxLeaf)
}

// checkAfterHost puts a check after instruction i, a call of the host. The host can take much
// longer than the cost of the call, and charge for it: a recursion that calls the host at each
// return would not be stopped otherwise.
func (f *flow) checkAfterHost(i int) {
	f.beginBlock(i+1, f.blocks[f.cur].out)
	f.addCheck()
}

// addUncharged adds cost to the path but not to a block: a callee or other code charges it.
func (f *flow) addUncharged(cost uint32) {
	f.path.cost += cost
	if f.path.tail > 0 {
		f.path.tail += cost
	}
	f.longest = f.longest.join(f.path)
}

// enter begins the label of a block, loop, if or try_table.
func (f *flow) enter(b *wasm.Body, i int, in *wasm.Instr) {
	l := label{kind: labelBlock, live: f.cur >= 0, freq: f.freq, port: f.newPort()}
	switch in.Op {
	case wasm.OpTryTable:
		f.catchesExceptions = true
		if l.live {
			for _, depth := range b.Labels[in.Arg : in.Arg+in.Arg2] {
				f.branch(depth)
				f.labels[len(f.labels)-1-int(depth)].caught = true
			}
		}
	case wasm.OpLoop:
		l.kind = labelLoop
		if l.live {
			if !f.callsFirst(b, i+1, false) {
				f.addLateCheck() // so that it is not done in every turn
			}
			f.join(f.blocks[f.cur].out, l.port)
			f.freq += freqLoop
			f.beginBlock(i+1, l.port)
			if !f.callsFirst(b, i+1, true) {
				f.addCheck()
			}
			f.loop = f.cur
			f.blocks[f.cur].assignedSpan = span{int32(len(f.assigned)), -1}
			l.loop = f.cur
		}
	case wasm.OpIf:
		l.kind = labelIf
		if l.live {
			f.addCost(i, Cost(in.Op))
			l.elsePort, l.elsePath = f.blocks[f.cur].out, f.path
			f.freq += freqIf
			f.beginBlock(i+1, l.elsePort)
		}
	}
	f.labels = append(f.labels, l)
}

func (f *flow) enterElse(i int) {
	l := &f.labels[len(f.labels)-1]
	f.closeLabel(l)
	l.kind = labelElse
	if l.live {
		f.freq = l.freq + freqIf
		f.path = l.elsePath
		f.beginBlock(i+1, l.elsePort)
	}
}

// callsFirst reports whether the code from instruction i on calls a function by its index before
// it branches in any way; with checks, a function that checks. A loop that begins with such a call
// needs no check of its own.
func (f *flow) callsFirst(b *wasm.Body, i int, checks bool) bool {
	for _, in := range b.Instrs[i:min(i+maxLookahead, len(b.Instrs))] {
		switch in.Op {
		case wasm.OpCall:
			if !checks || in.Arg >= f.imported && !f.unchecked[in.Arg-f.imported] {
				return true
			}
		case wasm.OpBlock:
		case wasm.OpLoop, wasm.OpIf, wasm.OpElse, wasm.OpEnd, wasm.OpTryTable, wasm.OpThrow, wasm.OpThrowRef, wasm.OpBr, wasm.OpBrIf,
			wasm.OpBrTable, wasm.OpReturn, wasm.OpReturnCall, wasm.OpReturnCallIndirect, wasm.OpUnreachable:
			return false
		}
	}
	return false
}

const maxLookahead = 64 // instructions in which callsFirst looks for a call

// closeLabel connects the current block with the end of a label, and ends the block.
func (f *flow) closeLabel(l *label) {
	if f.cur >= 0 {
		f.join(f.blocks[f.cur].out, l.port)
		l.targeted = true
		l.path = l.path.join(f.path)
	}
	f.cur = -1
}

func (f *flow) end(i int) {
	l := f.labels[len(f.labels)-1]
	f.labels = f.labels[:len(f.labels)-1]
	if len(f.labels) == 0 {
		f.closeLabel(&l)
		f.path = l.path
		f.leaveFunction()
		return
	}
	f.freq = l.freq
	switch {
	case l.kind == labelLoop:
		if l.live && f.loop == l.loop {
			f.blocks[l.loop].assignedSpan.to = int32(len(f.assigned))
			f.loop = -1
		}
		// Nothing branches here, but it runs less often than the loop.
		if f.cur >= 0 {
			f.beginBlock(i+1, f.blocks[f.cur].out)
		}
		return
	case l.kind == labelIf && l.live:
		f.join(l.elsePort, l.port)
		l.targeted = true
		l.path = l.path.join(l.elsePath)
	}
	if l.targeted {
		f.closeLabel(&l)
		f.path = l.path
		f.beginBlock(i+1, l.port)
		if l.caught {
			f.addCheck() // the cost on the way of the exception is unknown
		}
	}
}
