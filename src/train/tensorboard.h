/*
 * tensorboard.h - the numbers of metrics.jsonl as TensorBoard reads them: run.dir/tensorboard/
 * events.out.tfevents.SECONDS.HOST.PID (run.tensorboard). Records as in TFRecord files (length,
 * masked CRC-32C, data, masked CRC-32C), each an Event in the wire format of protocol buffers, with
 * one Summary of scalars and texts. A start that resumes tells that later steps come again, so that
 * TensorBoard drops those that it has.
 *
 * Source: tensorflow/core/util/event.proto, framework/summary.proto, lib/io/record_writer.cc.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct tensorboard;

/* goes_on: lines are added to those of earlier starts, after first_step; else event files of an
 * earlier run are removed. What cannot be written is no reason to end a run: NULL, or the end of
 * the file, after a warning. */
struct tensorboard *tensorboard_open(const char *run_dir, bool goes_on, int64_t first_step);
void tensorboard_close(struct tensorboard *tb); /* NULL: nothing */

/* One object of metrics.jsonl: its numbers become scalars of its step, its texts texts; arrays with
 * a value a layer a scalar each. Objects without a step are passed over. */
void tensorboard_add(struct tensorboard *tb, const json_t *object);
