"""An actor in the machine code of rings: it takes messages, publishes replies, again and again.

The text is as `ring_assembly` says.
"""

TEXT = """
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
"""
