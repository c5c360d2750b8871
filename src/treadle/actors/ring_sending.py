"""Sending in the machine code of rings: messages into the inbox, and the oldest out of it.

The text is as `ring_assembly` says.
"""

TEXT = """
; Copy %n elements into a ring from %other, or out of it.
define internal void @copy.ring(ptr %ring, i64 %at, i64 %mask, i64 %size, ptr %other, i64 %n,
                                i1 %out) alwaysinline {
  %capacity = add i64 %mask, 1
  %place = and i64 %at, %mask
  %to.end = sub i64 %capacity, %place
  %first = call i64 @llvm.umin.i64(i64 %n, i64 %to.end)
  %rest = sub i64 %n, %first
  %offset = mul i64 %place, %size
  %inside = getelementptr i8, ptr %ring, i64 %offset
  %bytes = mul i64 %first, %size
  %to = select i1 %out, ptr %other, ptr %inside
  %from = select i1 %out, ptr %inside, ptr %other
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %bytes, i1 false)
  %next = getelementptr i8, ptr %other, i64 %bytes
  %more = mul i64 %rest, %size
  %to.next = select i1 %out, ptr %next, ptr %ring
  %from.next = select i1 %out, ptr %ring, ptr %next
  call void @llvm.memcpy.p0.p0.i64(ptr %to.next, ptr %from.next, i64 %more, i1 false)
  ret void
}

; Send up to %count messages with one tag. Twice the number that was accepted, + 1 if the actor is
; to be woken, for which there has to be one. Called under the senders' lock, or the interpreter's.
define i64 @treadle.push(ptr %c, ptr %source, i64 %count, i64 %tag) {
entry:
  %tail.at = @word(TAIL)
  %head.at = @word(HEAD)
  %parked.at = @word(PARKED)
  %tail = load atomic i64, ptr %tail.at monotonic, align 8
  %seen.at = @word(HEAD_SEEN)
  %seen = load i64, ptr %seen.at
  %mask.at = @word(MASK)
  %mask = load i64, ptr %mask.at
  %size.at = @word(MESSAGE_BYTES)
  %size = load i64, ptr %size.at
  %inbox.at = @word(INBOX)
  %inbox = load ptr, ptr %inbox.at
  %entries.at = @word(ENTRIES)
  %entries = load ptr, ptr %entries.at
  %capacity = add i64 %mask, 1
  ; The actor writes HEAD, so a look at it is a wait for another processor, or for the bus.
  %used.seen = sub i64 %tail, %seen
  %room.seen = sub i64 %capacity, %used.seen
  %enough = icmp uge i64 %room.seen, %count
  br i1 %enough, label %sized, label %look
look:
  %head.now = load atomic i64, ptr %head.at acquire, align 8
  store i64 %head.now, ptr %seen.at
  br label %sized
sized:
  %head = phi i64 [ %seen, %entry ], [ %head.now, %look ]
  %used = sub i64 %tail, %head
  %room = sub i64 %capacity, %used
  %n = call i64 @llvm.umin.i64(i64 %count, i64 %room)
  %none = icmp eq i64 %n, 0
  br i1 %none, label %nothing, label %copy
copy:
  call void @copy.ring(ptr %inbox, i64 %tail, i64 %mask, i64 %size, ptr %source, i64 %n, i1 0)
  %time = call i64 @now()
  ; A kernel has no access to the clock of stamps: messages bring it what it has to be later than.
  %clock.at = @word(SENDER_CLOCK)
  %clock = load ptr, ptr %clock.at
  %no.clock = icmp eq ptr %clock, null
  br i1 %no.clock, label %tags, label %take.stamp
take.stamp:
  %taken = call i64 @treadle.stamp(ptr %clock, i64 1)
  %sent.at = @word(SENT_STAMP)
  store atomic i64 %taken, ptr %sent.at monotonic, align 8
  br label %tags
tags:
  %i = phi i64 [ 0, %copy ], [ 0, %take.stamp ], [ %next, %tags ]
  %sent = phi i64 [ 0, %copy ], [ %taken, %take.stamp ], [ %sent, %tags ]
  %number = add i64 %tail, %i
  %place = and i64 %number, %mask
  %pair = mul i64 %place, 2
  %tag.at = getelementptr i64, ptr %entries, i64 %pair
  %time.at = getelementptr i64, ptr %tag.at, i64 1
  store i64 %tag, ptr %tag.at
  store i64 %time, ptr %time.at
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %tags, label %publish
publish:
  %end = add i64 %tail, %n
  store atomic i64 %end, ptr %tail.at release, align 8
  %cell.at = @word(CELL)
  %cell = load ptr, ptr %cell.at
  %no.cell = icmp eq ptr %cell, null
  br i1 %no.cell, label %stamp, label %into.cell
into.cell:
  ; Each word has the number of the message in its upper half, so that one of another is known.
  %mark = shl i64 %end, 32
  %tag.half = and i64 %tag, 4294967295
  %tag.word = or i64 %mark, %tag.half
  store atomic i64 %tag.word, ptr %cell monotonic, align 8
  %last = sub i64 %n, 1
  %last.offset = mul i64 %last, %size
  %last.at = getelementptr i8, ptr %source, i64 %last.offset
  %words = lshr i64 %size, 2
  br label %word
word:
  %w = phi i64 [ 0, %into.cell ], [ %w.next, %word ]
  %from.at = getelementptr i32, ptr %last.at, i64 %w
  %half = load i32, ptr %from.at, align 1
  %whole = zext i32 %half to i64
  %marked = or i64 %mark, %whole
  %w.next = add i64 %w, 1
  %into = getelementptr i64, ptr %cell, i64 %w.next
  store atomic i64 %marked, ptr %into monotonic, align 8
  %more.words = icmp ult i64 %w.next, %words
  br i1 %more.words, label %word, label %stamp.in.cell
stamp.in.cell:
  br i1 %no.clock, label %stamp, label %halves
halves:
  %low = and i64 %sent, 4294967295
  %high = lshr i64 %sent, 32
  %low.marked = or i64 %mark, %low
  %high.marked = or i64 %mark, %high
  %low.at = getelementptr i64, ptr %into, i64 1
  %high.at = getelementptr i64, ptr %into, i64 2
  store atomic i64 %low.marked, ptr %low.at monotonic, align 8
  store atomic i64 %high.marked, ptr %high.at monotonic, align 8
  br label %stamp
stamp:
  %stamps.at = @word(ASKED_AT)
  %stamps = load ptr, ptr %stamps.at
  %unstamped = icmp eq ptr %stamps, null
  %unasked = icmp ult i64 %tag, ASKED
  %no.stamp = or i1 %unstamped, %unasked
  br i1 %no.stamp, label %published, label %stamp.it
stamp.it:
  %which = sub i64 %tag, ASKED
  %stamp.place = getelementptr i64, ptr %stamps, i64 %which
  store i64 %time, ptr %stamp.place
  br label %published
published:
  fence seq_cst
  %parked = load atomic i64, ptr %parked.at monotonic, align 8
  %twice = shl i64 %n, 1
  %result = or i64 %twice, %parked
  ret i64 %result
nothing:
  ret i64 0
}

; Drop the oldest message, if the ring is full and the actor does not take it first: its tag, and
; its bytes at %target; -1 if nothing was dropped. Called under the senders' lock.
define i64 @treadle.drop(ptr %c, ptr %target) {
entry:
  %tail.at = @word(TAIL)
  %head.at = @word(HEAD)
  %mask.at = @word(MASK)
  %size.at = @word(MESSAGE_BYTES)
  %inbox.at = @word(INBOX)
  %entries.at = @word(ENTRIES)
  %tail = load atomic i64, ptr %tail.at monotonic, align 8
  %head = load atomic i64, ptr %head.at acquire, align 8
  %mask = load i64, ptr %mask.at
  %used = sub i64 %tail, %head
  %full = icmp ugt i64 %used, %mask
  br i1 %full, label %read, label %nothing
read:
  %size = load i64, ptr %size.at
  %inbox = load ptr, ptr %inbox.at
  %entries = load ptr, ptr %entries.at
  %place = and i64 %head, %mask
  %pair = mul i64 %place, 2
  %tag.at = getelementptr i64, ptr %entries, i64 %pair
  %tag = load i64, ptr %tag.at
  %offset = mul i64 %place, %size
  %message = getelementptr i8, ptr %inbox, i64 %offset
  call void @llvm.memcpy.p0.p0.i64(ptr %target, ptr %message, i64 %size, i1 false)
  %after = add i64 %head, 1
  %exchange = cmpxchg ptr %head.at, i64 %head, i64 %after acq_rel acquire, align 8
  %won = extractvalue { i64, i1 } %exchange, 1
  br i1 %won, label %done, label %nothing
done:
  ret i64 %tag
nothing:
  ret i64 -1
}
"""
