"""The text of the machine code that works on an actor's rings, in LLVM assembly.

`@word(NAME)` is the address of a word of the control block `%c`; other names in capitals are
constants of `ring_code`, or what a processor or a system has for them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping

_SOURCE = """
define internal i64 @now() alwaysinline {
  %t = CLOCK
  ret i64 %t
}

; The system's clock: microseconds since 1970.
define internal i64 @wall() {
  WALL
  ret i64 %us
}

; Take so many stamps, one after the other, from the clock at %clock: the first. Each is later than
; all that were taken, and not before the system's clock.
define i64 @treadle.stamp(ptr %clock, i64 %count) {
entry:
  %us = call i64 @wall()
  %physical = shl i64 %us, COUNTER_BITS
  %seen = load atomic i64, ptr %clock monotonic, align 8
  br label %again
again:
  %last = phi i64 [ %seen, %entry ], [ %other, %again ]
  %next = add i64 %last, 1
  %first = call i64 @llvm.smax.i64(i64 %next, i64 %physical)
  %before = sub i64 %first, 1
  %taken = add i64 %before, %count
  %exchange = cmpxchg ptr %clock, i64 %last, i64 %taken acq_rel acquire, align 8
  %other = extractvalue { i64, i1 } %exchange, 0
  %won = extractvalue { i64, i1 } %exchange, 1
  br i1 %won, label %done, label %again
done:
  ret i64 %first
}

; Set a clock to a stamp, unless it is later already.
define void @treadle.merge(ptr %clock, i64 %stamp) {
  %before = atomicrmw max ptr %clock, i64 %stamp acq_rel, align 8
  ret void
}

; A message that was sent at a time, and is done at another.
define internal void @count.time(ptr %c, i64 %time, i64 %sent) alwaysinline {
  %histogram = @word(HISTOGRAM)
  %took = sub i64 %time, %sent
  %positive = call i64 @llvm.smax.i64(i64 %took, i64 8)
  %zeros = call i64 @llvm.ctlz.i64(i64 %positive, i1 false)
  %power = sub i64 63, %zeros
  %shift = sub i64 %power, 3
  %top = lshr i64 %positive, %shift
  %fine = and i64 %top, 7
  %coarse = mul i64 %power, 8
  %bucket = or i64 %coarse, %fine
  %bucket.at = getelementptr i64, ptr %histogram, i64 %bucket
  %count = load i64, ptr %bucket.at
  %count.after = add i64 %count, 1
  store i64 %count.after, ptr %bucket.at
  ret void
}

; The same, where other threads count, too.
define internal void @count.shared(ptr %c, i64 %time, i64 %sent) alwaysinline {
  %histogram = @word(HISTOGRAM)
  %took = sub i64 %time, %sent
  %positive = call i64 @llvm.smax.i64(i64 %took, i64 8)
  %zeros = call i64 @llvm.ctlz.i64(i64 %positive, i1 false)
  %power = sub i64 63, %zeros
  %shift = sub i64 %power, 3
  %top = lshr i64 %positive, %shift
  %fine = and i64 %top, 7
  %coarse = mul i64 %power, 8
  %bucket = or i64 %coarse, %fine
  %bucket.at = getelementptr i64, ptr %histogram, i64 %bucket
  %before = atomicrmw add ptr %bucket.at, i64 1 monotonic, align 8
  ret void
}

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
; to be woken. Called under the senders' lock, or the interpreter's.
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
  br i1 %none, label %published, label %copy
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

; Take up to %limit messages into the batch, as many as have room for their replies.
define i64 @treadle.take(ptr %c, i64 %limit) {
entry:
  %tail.at = @word(TAIL)
  %head.at = @word(HEAD)
  %out.tail.at = @word(OUT_TAIL)
  %out.head.at = @word(OUT_HEAD)
  %taken.at = @word(TAKEN)
  %mask.at = @word(MASK)
  %out.mask.at = @word(OUT_MASK)
  %size.at = @word(MESSAGE_BYTES)
  %inbox.at = @word(INBOX)
  %entries.at = @word(ENTRIES)
  %batch.at = @word(BATCH)
  %batch.entries.at = @word(BATCH_ENTRIES)
  br label %again
again:
  %head = load atomic i64, ptr %head.at acquire, align 8
  %tail = load atomic i64, ptr %tail.at acquire, align 8
  %waiting = sub i64 %tail, %head
  %wanted = call i64 @llvm.umin.i64(i64 %waiting, i64 %limit)
  %empty = icmp eq i64 %wanted, 0
  br i1 %empty, label %nothing, label %begin
begin:
  %out.tail = load atomic i64, ptr %out.tail.at monotonic, align 8
  %out.head = load atomic i64, ptr %out.head.at acquire, align 8
  %mask = load i64, ptr %mask.at
  %out.mask = load i64, ptr %out.mask.at
  %size = load i64, ptr %size.at
  %inbox = load ptr, ptr %inbox.at
  %entries = load ptr, ptr %entries.at
  %batch = load ptr, ptr %batch.at
  %batch.entries = load ptr, ptr %batch.entries.at
  %out.used = sub i64 %out.tail, %out.head
  %out.capacity = add i64 %out.mask, 1
  %out.room = sub i64 %out.capacity, %out.used
  br label %copy
copy:
  %i = phi i64 [ 0, %begin ], [ %next, %copied ]
  %room = phi i64 [ %out.room, %begin ], [ %room.after, %copied ]
  %number = add i64 %head, %i
  %place = and i64 %number, %mask
  %pair = mul i64 %place, 2
  %tag.at = getelementptr i64, ptr %entries, i64 %pair
  %time.at = getelementptr i64, ptr %tag.at, i64 1
  %tag = load i64, ptr %tag.at
  %time = load i64, ptr %time.at
  %plain = icmp eq i64 %tag, TO_OUTBOX
  %no.room = icmp eq i64 %room, 0
  %stalled = and i1 %plain, %no.room
  br i1 %stalled, label %exchange, label %one
one:
  %needs = zext i1 %plain to i64
  %room.after = sub i64 %room, %needs
  %offset = mul i64 %place, %size
  %from = getelementptr i8, ptr %inbox, i64 %offset
  %to.offset = mul i64 %i, %size
  %to = getelementptr i8, ptr %batch, i64 %to.offset
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %size, i1 false)
  %to.pair = mul i64 %i, 2
  %to.tag = getelementptr i64, ptr %batch.entries, i64 %to.pair
  %to.time = getelementptr i64, ptr %to.tag, i64 1
  store i64 %tag, ptr %to.tag
  store i64 %time, ptr %to.time
  br label %copied
copied:
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %wanted
  br i1 %more, label %copy, label %exchange
exchange:
  %n = phi i64 [ %i, %copy ], [ %next, %copied ]
  %none = icmp eq i64 %n, 0
  br i1 %none, label %nothing, label %claim
claim:
  %after = add i64 %head, %n
  %pair.of = cmpxchg ptr %head.at, i64 %head, i64 %after acq_rel acquire, align 8
  %won = extractvalue { i64, i1 } %pair.of, 1
  br i1 %won, label %done, label %again
done:
  store atomic i64 %n, ptr %taken.at monotonic, align 8
  ret i64 %n
nothing:
  ret i64 0
}

; Publish the replies of the messages %first to %last of the batch, and count them.
define void @treadle.finish(ptr %c, i64 %first, i64 %last) {
entry:
  %out.tail.at = @word(OUT_TAIL)
  %processed.at = @word(PROCESSED)
  %taken.at = @word(TAKEN)
  %out.mask.at = @word(OUT_MASK)
  %size.at = @word(REPLY_BYTES)
  %outbox.at = @word(OUTBOX)
  %answers.at = @word(ANSWERS)
  %flags.at = @word(FLAGS)
  %entries.at = @word(BATCH_ENTRIES)
  %replies.at = @word(BATCH_REPLIES)
  %out.tail = load atomic i64, ptr %out.tail.at monotonic, align 8
  %out.mask = load i64, ptr %out.mask.at
  %size = load i64, ptr %size.at
  %outbox = load ptr, ptr %outbox.at
  %answers = load ptr, ptr %answers.at
  %flags = load ptr, ptr %flags.at
  %entries = load ptr, ptr %entries.at
  %replies = load ptr, ptr %replies.at
  %clock.at = @word(CLOCK_WORD)
  %clock = load ptr, ptr %clock.at
  %stamped = icmp ne ptr %clock, null
  %stamps.at = @word(STAMPS)
  %stamps = load ptr, ptr %stamps.at
  %out.capacity = add i64 %out.mask, 1
  %some = icmp ult i64 %first, %last
  br i1 %some, label %begin, label %over
begin:
  %time = call i64 @now()
  br i1 %stamped, label %take.stamps, label %one
take.stamps:
  %these = sub i64 %last, %first
  %stamp.first = call i64 @treadle.stamp(ptr %clock, i64 %these)
  br label %one
one:
  %i = phi i64 [ %first, %begin ], [ %first, %take.stamps ], [ %next, %next.one ]
  %out = phi i64 [ %out.tail, %begin ], [ %out.tail, %take.stamps ], [ %out.after, %next.one ]
  %stamp = phi i64 [ 0, %begin ], [ %stamp.first, %take.stamps ], [ %stamp.next, %next.one ]
  %pair = mul i64 %i, 2
  %tag.at = getelementptr i64, ptr %entries, i64 %pair
  %sent.at = getelementptr i64, ptr %tag.at, i64 1
  %tag = load i64, ptr %tag.at
  %sent = load i64, ptr %sent.at
  %offset = mul i64 %i, %size
  %reply = getelementptr i8, ptr %replies, i64 %offset
  switch i64 %tag, label %answer [ i64 DROPPED, label %next.one
                                   i64 TO_OUTBOX, label %plain ]
plain:
  %place = and i64 %out, %out.mask
  %place.offset = mul i64 %place, %size
  %to = getelementptr i8, ptr %outbox, i64 %place.offset
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %reply, i64 %size, i1 false)
  %out.next = add i64 %out, 1
  br i1 %stamped, label %stamp.plain, label %next.one
stamp.plain:
  %stamp.at = getelementptr i64, ptr %stamps, i64 %place
  store i64 %stamp, ptr %stamp.at
  br label %next.one
answer:
  %which = sub i64 %tag, ASKED
  br i1 %stamped, label %stamp.answer, label %give.answer
stamp.answer:
  %stamp.place = add i64 %out.capacity, %which
  %stamp.of = getelementptr i64, ptr %stamps, i64 %stamp.place
  store i64 %stamp, ptr %stamp.of
  br label %give.answer
give.answer:
  %answer.offset = mul i64 %which, %size
  %answer.to = getelementptr i8, ptr %answers, i64 %answer.offset
  call void @llvm.memcpy.p0.p0.i64(ptr %answer.to, ptr %reply, i64 %size, i1 false)
  %flag = getelementptr i64, ptr %flags, i64 %which
  store atomic i64 ANSWERED, ptr %flag release, align 8
  br label %next.one
next.one:
  %out.after = phi i64 [ %out, %one ], [ %out.next, %plain ], [ %out.next, %stamp.plain ],
                       [ %out, %give.answer ]
  %stamp.next = add i64 %stamp, 1
  call void @count.time(ptr %c, i64 %time, i64 %sent)
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %last
  br i1 %more, label %one, label %done
done:
  store atomic i64 %out.after, ptr %out.tail.at release, align 8
  %n = sub i64 %last, %first
  %processed = load atomic i64, ptr %processed.at monotonic, align 8
  %processed.after = add i64 %processed, %n
  store atomic i64 %processed.after, ptr %processed.at release, align 8
  %taken = load atomic i64, ptr %taken.at monotonic, align 8
  %left = sub i64 %taken, %n
  store atomic i64 %left, ptr %taken.at release, align 8
  br label %over
over:
  ret void
}

; Add to the histogram how long %n messages took, whose times of sending are in a ring of stamps.
define void @treadle.measure(ptr %c, ptr %stamps, i64 %first, i64 %mask, i64 %n) {
entry:
  %time = call i64 @now()
  %some = icmp ne i64 %n, 0
  br i1 %some, label %one, label %over
one:
  %i = phi i64 [ 0, %entry ], [ %next, %one ]
  %number = add i64 %first, %i
  %place = and i64 %number, %mask
  %stamp.at = getelementptr i64, ptr %stamps, i64 %place
  %sent = load i64, ptr %stamp.at
  call void @count.shared(ptr %c, i64 %time, i64 %sent)
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %one, label %over
over:
  ret void
}

; Receive up to %limit replies: twice their number, + 1 if the actor is to be woken. Called under
; the receivers' lock.
define i64 @treadle.pop(ptr %c, ptr %target, i64 %limit) {
entry:
  %out.tail.at = @word(OUT_TAIL)
  %out.head.at = @word(OUT_HEAD)
  %parked.at = @word(PARKED)
  %mask.at = @word(OUT_MASK)
  %size.at = @word(REPLY_BYTES)
  %outbox.at = @word(OUTBOX)
  %head = load atomic i64, ptr %out.head.at monotonic, align 8
  %tail = load atomic i64, ptr %out.tail.at acquire, align 8
  %mask = load i64, ptr %mask.at
  %size = load i64, ptr %size.at
  %outbox = load ptr, ptr %outbox.at
  %there = sub i64 %tail, %head
  %n = call i64 @llvm.umin.i64(i64 %there, i64 %limit)
  call void @copy.ring(ptr %outbox, i64 %head, i64 %mask, i64 %size, ptr %target, i64 %n, i1 1)
  %after = add i64 %head, %n
  store atomic i64 %after, ptr %out.head.at release, align 8
  fence seq_cst
  %parked = load atomic i64, ptr %parked.at monotonic, align 8
  %twice = shl i64 %n, 1
  %result = or i64 %twice, %parked
  ret i64 %result
}

; Store a word so that everything before it is seen with it, and what follows sees what others
; stored before.
define void @treadle.announce(ptr %word, i64 %value) {
  store atomic i64 %value, ptr %word release, align 8
  fence seq_cst
  ret void
}

; Between two polls. Every 64th time the thread gives up its processor, in case the thread that it
; waits for is to run there: systems often place both on one.
define internal void @pause(i64 %i) alwaysinline {
  PAUSE
  %phase = and i64 %i, 63
  %yields = icmp eq i64 %phase, 63
  br i1 %yields, label %give.up, label %done
give.up:
  YIELD
  br label %done
done:
  ret void
}

; The word, once it is another than %value, or after so many polls.
define i64 @treadle.spin(ptr %word, i64 %value, i64 %polls) {
entry:
  br label %poll
poll:
  %i = phi i64 [ 0, %entry ], [ %next, %again ]
  %now = load atomic i64, ptr %word acquire, align 8
  %changed = icmp ne i64 %now, %value
  %tired = icmp uge i64 %i, %polls
  %leave = or i1 %changed, %tired
  br i1 %leave, label %done, label %again
again:
  call void @pause(i64 %i)
  %next = add i64 %i, 1
  br label %poll
done:
  ret i64 %now
}

; Look at an actor that other threads may serve, too: until a message has waited for %still looks
; while HEAD stayed where it is, or %bell is another than %rung, or nothing has changed for %quiet
; looks.
define void @treadle.watch(ptr %c, ptr %bell, i64 %rung, i64 %still, i64 %quiet) {
entry:
  %tail.at = @word(TAIL)
  %head.at = @word(HEAD)
  br label %look
look:
  %n = phi i64 [ 0, %entry ], [ %n.next, %again ]
  %since = phi i64 [ 0, %entry ], [ %since.next, %again ]
  %waited = phi i64 [ 0, %entry ], [ %waited.next, %again ]
  %tail.before = phi i64 [ -1, %entry ], [ %tail, %again ]
  %head.before = phi i64 [ -1, %entry ], [ %head, %again ]
  %bell.now = load atomic i64, ptr %bell acquire, align 8
  %head = load atomic i64, ptr %head.at acquire, align 8
  %tail = load atomic i64, ptr %tail.at acquire, align 8
  %rang = icmp ne i64 %bell.now, %rung
  %head.same = icmp eq i64 %head, %head.before
  %tail.same = icmp eq i64 %tail, %tail.before
  %same = and i1 %head.same, %tail.same
  %since.more = add i64 %since, 1
  %since.next = select i1 %same, i64 %since.more, i64 0
  %waits = icmp ne i64 %tail, %head
  %waits.on = and i1 %waits, %head.same
  %waited.more = add i64 %waited, 1
  %waited.next = select i1 %waits.on, i64 %waited.more, i64 0
  %long = icmp uge i64 %waited.next, %still
  %calm = icmp uge i64 %since.next, %quiet
  %either = or i1 %long, %calm
  %leave = or i1 %either, %rang
  br i1 %leave, label %done, label %again
again:
  call void @pause(i64 %n)
  %n.next = add i64 %n, 1
  br label %look
done:
  ret void
}

; The flag of an answer, once it has one, or after so many polls. How long that took is counted here
; if its time of sending is in the table of those that were asked.
define i64 @treadle.await(ptr %c, i64 %which, i64 %polls) {
entry:
  %flags.at = @word(FLAGS)
  %flags = load ptr, ptr %flags.at
  %flag.at = getelementptr i64, ptr %flags, i64 %which
  %flag = call i64 @treadle.spin(ptr %flag.at, i64 PENDING, i64 %polls)
  %asked.at = @word(ASKED_AT)
  %asked = load ptr, ptr %asked.at
  %untimed = icmp eq ptr %asked, null
  %none = icmp eq i64 %flag, PENDING
  %skip = or i1 %untimed, %none
  br i1 %skip, label %done, label %count
count:
  call void @treadle.measure(ptr %c, ptr %asked, i64 %which, i64 -1, i64 1)
  br label %done
done:
  ret i64 %flag
}

; Handle messages, one call of the kernel each, until there is a reason to return to Python; also
; after some milliseconds, if others wait for the thread (%limited). If a
; thread waits for something, the messages that are there are handled first, for a moment: to take
; the interpreter's lock after each would cost more than most handlers.
define i64 @treadle.serve(ptr %c, ptr %kernel, ptr %bindings, ptr %parameters, ptr %grid,
                          i64 %blocks, i64 %polls, i64 %limited) {
entry:
  %began = call i64 @now()
  %others = icmp ne i64 %limited, 0
  %attention.at = @word(ATTENTION)
  %waiters.at = @word(WAITERS)
  %parked.at = @word(PARKED)
  %heartbeat.at = @word(HEARTBEAT)
  %report.at = @word(REPORT)
  %report = load ptr, ptr %report.at
  %reports = icmp ne ptr %report, null
  store atomic i64 0, ptr %parked.at release, align 8
  br label %poll
poll:
  %idle = phi i64 [ 0, %entry ], [ 0, %finished ], [ 0, %go.on ], [ 0, %wait.on ],
                  [ %idle.next, %pause ]
  %since = phi i64 [ 0, %entry ], [ 0, %finished ], [ 0, %go.on ], [ %since.new, %wait.on ],
                   [ %since, %pause ]
  %beat = load atomic i64, ptr %heartbeat.at monotonic, align 8
  %beat.next = add i64 %beat, 1
  store atomic i64 %beat.next, ptr %heartbeat.at monotonic, align 8
  %attention = load atomic i64, ptr %attention.at acquire, align 8
  %asked = icmp ne i64 %attention, 0
  br i1 %asked, label %attend, label %look
look:
  %n = call i64 @treadle.take(ptr %c, i64 1)
  %some = icmp ne i64 %n, 0
  br i1 %some, label %handle, label %nothing
handle:
  call void %kernel(ptr %bindings, ptr %parameters, ptr %grid, i64 0, i64 %blocks)
  br i1 %reports, label %check, label %publish
check:
  %words = load atomic i32, ptr %report acquire, align 4
  %quiet = icmp eq i32 %words, 0
  br i1 %quiet, label %publish, label %reported
publish:
  call void @treadle.finish(ptr %c, i64 0, i64 1)
  fence seq_cst
  %waiters = load atomic i64, ptr %waiters.at monotonic, align 8
  %awaited = icmp ne i64 %waiters, 0
  br i1 %awaited, label %late.now, label %finished
late.now:
  %time = call i64 @now()
  %unseen = icmp eq i64 %since, 0
  %since.new = select i1 %unseen, i64 %time, i64 %since
  %waited = sub i64 %time, %since.new
  %long = icmp ugt i64 %waited, DELAY
  br i1 %long, label %notify, label %wait.on
wait.on:
  br label %poll
finished:
  br i1 %others, label %go.on, label %poll
go.on:
  %then = call i64 @now()
  %ran = sub i64 %then, %began
  %over = icmp uge i64 %ran, SLICE
  br i1 %over, label %turn.over, label %poll
turn.over:
  ret i64 HAS_TURNED
nothing:
  %none.waits = icmp eq i64 %since, 0
  br i1 %none.waits, label %idle.on, label %notify
idle.on:
  %tired = icmp uge i64 %idle, %polls
  br i1 %tired, label %park, label %pause
pause:
  call void @pause(i64 %idle)
  %idle.next = add i64 %idle, 1
  br label %poll
park:
  store atomic i64 1, ptr %parked.at release, align 8
  fence seq_cst
  %m = call i64 @treadle.take(ptr %c, i64 1)
  %late = icmp ne i64 %m, 0
  br i1 %late, label %unpark, label %sleep
unpark:
  store atomic i64 0, ptr %parked.at release, align 8
  br label %handle
sleep:
  ret i64 HAS_PARKED
reported:
  ret i64 HAS_REPORT
notify:
  ret i64 HAS_WAITERS
attend:
  ret i64 NEEDS_ATTENTION
}

declare i64 @llvm.umin.i64(i64, i64)
declare i64 @llvm.smax.i64(i64, i64)
declare i64 @llvm.ctlz.i64(i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""

# By the processor: what a thread does while it polls, and a clock that all of its cores share.
_PAUSES = {
    "x86_64": ("call void @llvm.x86.sse2.pause()", "declare void @llvm.x86.sse2.pause()"),
    "aarch64": ("call void @llvm.aarch64.hint(i32 1)", "declare void @llvm.aarch64.hint(i32)"),
}
_CLOCKS = {
    "x86_64": ("call i64 @llvm.readcyclecounter()", "declare i64 @llvm.readcyclecounter()"),
    "aarch64": ('call i64 asm sideeffect "mrs $0, cntvct_el0", "=r"()', ""),
}
# The system's time, by its own function, whose address is ADDRESS.
_WALL = """\
%time = alloca [2 x i64], align 8
  %failed = call i32 inttoptr (i64 ADDRESS to ptr)(i32 0, ptr %time)
  %seconds = load i64, ptr %time, align 8
  %ns.at = getelementptr i64, ptr %time, i64 1
  %ns = load i64, ptr %ns.at, align 8
  %whole = mul i64 %seconds, 1000000
  %part = sdiv i64 %ns, 1000
  %us = add i64 %whole, %part"""
# Of Windows: steps of 100 ns since 1601.
_WALL_OF_WINDOWS = """\
%time = alloca i64, align 8
  call void inttoptr (i64 ADDRESS to ptr)(ptr %time)
  %steps = load i64, ptr %time, align 8
  %since = udiv i64 %steps, 10
  %us = sub i64 %since, 11644473600000000"""

# Ticks of that clock, some 20 µs, for which threads that wait are not notified while there is work.
_DELAYS = {"x86_64": "50000", "aarch64": "1000"}
_SLICE = 100  # such delays are a turn
for _each in (_PAUSES, _CLOCKS):
    _each["arm64"] = _each["aarch64"]
_DELAYS["arm64"] = _DELAYS["aarch64"]


def source_for(processor: str, words: Mapping[str, int], yields: int, wall: int) -> str:
    """The module for a processor, with the words of the control block. Addresses of the system's
    functions: `yields` gives up the processor (0 if there is none), `wall` says what time it is."""
    pause, declared = _PAUSES.get(processor, ("", ""))
    clock, clock_declared = _CLOCKS.get(processor, ("add i64 0, 0", ""))
    text = re.sub(
        r"@word\((\w+)\)",
        lambda found: f"getelementptr i64, ptr %c, i64 {words[found[1]]}",
        _SOURCE,
    )
    text = re.sub(r"\b[A-Z_]{4,}\b", lambda found: str(words.get(found[0], found[0])), text)
    text = text.replace("PAUSE", pause).replace("CLOCK", clock)
    wall_code = _WALL_OF_WINDOWS if sys.platform == "win32" else _WALL
    text = text.replace("  WALL\n", f"  {wall_code.replace('ADDRESS', str(wall))}\n")
    given_up = f"%ignored = call i32 inttoptr (i64 {yields} to ptr)()" if yields else ""
    text = text.replace("YIELD", given_up)
    delay = _DELAYS.get(processor, "0")
    text = text.replace("DELAY", delay).replace("SLICE", str(_SLICE * int(delay)))
    shown = "define i64 @treadle.clock() {\n  %t = call i64 @now()\n  ret i64 %t\n}\n"
    return f"{text}{shown}{declared}\n{clock_declared}\n"
