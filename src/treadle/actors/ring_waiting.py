"""Receiving in the machine code of rings, and waiting for what others do.

The text is as `ring_assembly` says.
"""

TEXT = """
; Receive up to %limit replies: twice their number, + 1 if the actor is to be woken, which one that
; finds none has no reason to do. Called under the receivers' lock.
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
  %none = icmp eq i64 %n, 0
  br i1 %none, label %nothing, label %copy
copy:
  call void @copy.ring(ptr %outbox, i64 %head, i64 %mask, i64 %size, ptr %target, i64 %n, i1 1)
  %after = add i64 %head, %n
  store atomic i64 %after, ptr %out.head.at release, align 8
  fence seq_cst
  %parked = load atomic i64, ptr %parked.at monotonic, align 8
  %twice = shl i64 %n, 1
  %result = or i64 %twice, %parked
  ret i64 %result
nothing:
  ret i64 0
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
"""
