/* The manual page and the completion scripts, written at build time from the tables of commands
 * (commands.h), options (args.h) and algorithms (algorithm.h). */
#ifndef KCP_MANUAL_H
#define KCP_MANUAL_H

#include <stdbool.h>
#include <stdio.h>

#include "kcp/args.h"
#include "kcp/commands.h"

/* Errors stay in the stream. */
void manual_write_page(FILE *stream);
void manual_write_bash(FILE *stream);
void manual_write_zsh(FILE *stream);
void manual_write_fish(FILE *stream);

/* Whether a command (its kind) takes the option. */
bool manual_takes(const struct kcp_command *command, const struct kcp_flag *flag);

/* Whether the option's value is the name of a file. */
bool manual_is_file(const struct kcp_flag *flag);

/* The words that the option's value, or the command's first operand, can be, with a blank between
 * them; writes nothing when any text will do. Of lp:T only lp: is written, and
 * nothing of N. */
void manual_write_words(FILE *stream, const struct kcp_flag *flag);
void manual_write_operand_words(FILE *stream, const struct kcp_command *command);
bool manual_has_words(const struct kcp_flag *flag);
bool manual_has_operand_words(const struct kcp_command *command);

#endif
