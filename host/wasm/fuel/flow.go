package fuel

import "github.com/stockade-dev/stockade/host/wasm"

// A guest must not run long between two checks of its counter. These limits bound its
// consumption in between, in units.
const (
	// maxPath limits the cost of a path through one function without a check.
	maxPath = 10_000
	// maxLeaf limits the cost of a path through a function that neither checks at its
	// entry nor calls another.
	maxLeaf = 64
	// maxTail limits the cost of a path that begins after a call: when a deep recursion
	// unwinds there are only such paths.
	maxTail = 128
	// maxAhead limits the units that are charged ahead, see tree.go.
	maxAhead = 4096
)

// block is a basic block: code that is executed from its start to its end
// unless it traps. Blocks are the edges of a graph whose nodes are ports, the
// points between blocks.
type block struct {
	start        int32 // index of its first instruction
	in, out      int32 // ports
	weight       uint32
	freq         int32 // logarithm of the estimated number of runs
	check        bool  // the block begins with a charge and a check of the counter
	firstCheck   bool  // in a function that checks late: this is the first check of a call
	assignedSpan span  // of an innermost loop: the locals that it assigns, a range of flow.assigned
	trap         bool  // the block ends with unreachable
	charge       int64
}

type span struct{ from, to int32 }

// outside is the port outside of the function.
const outside = 0

type labelKind uint8

const (
	labelBlock labelKind = iota
	labelLoop
	labelIf
	labelElse
)

// label is a structured instruction whose end has not been reached yet.
type label struct {
	kind     labelKind
	live     bool // the start can be reached
	targeted bool // there is a branch to the end
	caught   bool // an exception can lead there
	port     int32
	loop     int32 // the first block of a loop
	elsePort int32 // port of the else branch
	freq     int32 // frequency before the instruction
	path     path  // the costliest path that branches to the end
	elsePath path
}

// path holds the largest consumption since the last check, in units.
type path struct {
	cost uint32
	tail uint32 // consumption since the last call, plus 1; 0 without a call since the last check
	// uncheckedEntry is set if a path leads here from the entry without a check.
	uncheckedEntry bool
}

// join returns the costlier of two paths that meet.
func (p path) join(q path) path {
	return path{max(p.cost, q.cost), max(p.tail, q.tail), p.uncheckedEntry || q.uncheckedEntry}
}

// Logarithms of the number of runs: ten times in a loop, half in a branch.
const (
	freqLoop = 33
	freqIf   = -10
	freqBrIf = -3
)

// flow is the control flow of one function. It is reused for one function after another,
// so that nothing is allocated for each.
type flow struct {
	blocks []block
	parent []int32 // union-find over ports
	labels []label

	imported uint32 // number of imported functions
	// unchecked is set for each function of the module that can return without a check.
	unchecked []bool
	// hostInTable is set if an indirect call can reach a function of the host.
	hostInTable bool

	changesHiddenState bool // the function changes state other than memory and globals
	namesDataSegment   bool
	hasCalls           bool
	catchesExceptions  bool
	longest            path // the costliest path anywhere

	checksLate     bool   // the function checks before its first call, and not at its entry
	exitsUnchecked bool   // the function checks late, and can return without a check
	uncheckedCost  uint32 // largest cost of a call without a check

	// assigned holds the locals that innermost loops assign.
	assigned []uint32
	inLoop   []int32 // for each local, the loop that assigned it last
	loop     int32   // first block of the loop that may be innermost; or -1

	cur  int32 // block of the current instructions, or -1 in dead code
	freq int32
	path path
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

// join merges two ports. The outside stays the root of its set.
func (f *flow) join(p, q int32) {
	p, q = f.find(p), f.find(q)
	if p < q {
		f.parent[q] = p
	} else {
		f.parent[p] = q
	}
}

// beginBlock starts a block at instruction start, after port in.
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

// addLateCheck puts a check at the start of the current block if there was none since the
// entry, so that no path leads from one call to the next without a check.
func (f *flow) addLateCheck() {
	if f.path.uncheckedEntry {
		f.addCheck()
		f.path.cost = f.blocks[f.cur].weight
	}
}

// leaveFunction records the cost of a path that leaves the function.
func (f *flow) leaveFunction() {
	if f.path.uncheckedEntry {
		f.exitsUnchecked, f.uncheckedCost = true, max(f.uncheckedCost, f.path.cost)
	}
}

// addCost adds the cost of instruction at to the current block, or begins a new one with
// a check if the path becomes too long.
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

// maxUnchecked returns the limit on the cost of a path without a check. It is lower if
// exceptions are caught, because an exception leads to a path whose cost so far is
// unknown.
func (f *flow) maxUnchecked() uint32 {
	if f.catchesExceptions {
		return maxTail
	}
	return maxPath
}

// insertCheck puts a check before an instruction.
func (f *flow) insertCheck(at int) {
	if b := f.blocks[f.cur]; b.start != int32(at) {
		f.beginBlock(at, b.out)
	}
	f.addCheck()
}

// branch connects the current block with a label.
func (f *flow) branch(depth uint32) {
	l := &f.labels[len(f.labels)-1-int(depth)]
	f.join(f.blocks[f.cur].out, l.port)
	l.targeted = true
	l.path = l.path.join(f.path)
}

// analyze splits a function into blocks. With late, it checks before the first call or
// loop, and not at its entry: most calls of a recursive function are those at which the
// recursion ends.
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

// isLeaf reports whether a function can do without a check. Calls of a leaf count as if
// they cost maxLeaf.
func (f *flow) isLeaf() bool { return !f.hasCalls && f.longest.cost <= maxLeaf }

// canCheckLate reports whether a function that was analyzed with late gains from late
// checks: some of its calls return without a check, at a cost of at most maxLeaf.
func (f *flow) canCheckLate() bool {
	return f.hasCalls && !f.catchesExceptions && f.exitsUnchecked && f.uncheckedCost <= maxLeaf
}

// A bulk operation is executed in place if its size is a small constant, or turns out to
// be small. A larger one calls a helper, which checks.
const (
	maxConstant  = 8 << 10
	maxInlineLog = 10
	maxInline    = 1 << maxInlineLog
)

// constantSize returns the size in bytes of a memory.copy or memory.fill, if it is a
// small constant.
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

// checksFirst reports whether a function reaches a loop that checks, before it branches
// or calls. Most Go functions do.
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

// noteCall records a call. A callee without a check may have consumed up to maxLeaf;
// after one that checks, only later code counts.
func (f *flow) noteCall(unchecked bool) {
	f.hasCalls = true
	if !unchecked {
		f.path = path{tail: 1}
		return
	}
	// In a block of its own the check would come after the call; it only matters that
	// there is one.
	f.path.tail = max(f.path.tail, 1)
	f.addUncharged(maxLeaf)
}

// checkAfterHost puts a check after a call of the host. The host can take much longer
// than the cost of the call, and charge for it: a recursion that calls the host at each
// return would not be stopped otherwise.
func (f *flow) checkAfterHost(i int) {
	f.beginBlock(i+1, f.blocks[f.cur].out)
	f.addCheck()
}

// addUncharged adds cost to the path but not to a block, because it is charged at run
// time.
func (f *flow) addUncharged(cost uint32) {
	f.path.cost += cost
	if f.path.tail > 0 {
		f.path.tail += cost
	}
	f.longest = f.longest.join(f.path)
}

// enter begins a block, loop, if or try_table.
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

// callsFirst reports whether code calls a function before it branches in any way; with
// checks, a function that checks. A loop that does needs no check of its own.
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

const maxLookahead = 64 // instructions

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
