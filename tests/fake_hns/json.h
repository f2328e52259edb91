/* JSON documents as trees. Nothing is freed: whoever loads the fake is a process of seconds, or a test. */
#ifndef FAKE_HNS_JSON_H
#define FAKE_HNS_JSON_H

#include <stdbool.h>

enum kind { NOTHING, LITERAL, TEXT, LIST, OBJECT }; /* LITERAL: a number, true, false, null, as it was written */

typedef struct value {
    enum kind kind;
    char *text; /* of LITERAL and TEXT, in UTF-8 */
    char *name; /* of an object's member */
    struct value *first, *next;
} value;

value *json_parse(const char *text); /* NULL if it is none, or has anything behind it */
char *json_text(const value *);

value *json_object(void);
value *json_list(void);
value *json_of(const char *text);
value *json_literal(const char *text);
value *json_copy(const value *);

value *json_member(const value *object, const char *name); /* names are compared as HNS does, whatever their case */
const char *json_word(const value *object, const char *name); /* the member's text; "" without one */
void json_set(value *object, const char *name, value *member);
void json_remove(value *object, const char *name);
void json_append(value *list, value *member);
void json_drop(value *list, const value *member);

char *joined(const char *first, ...); /* up to a NULL */
bool same_word(const char *one, const char *other);

#endif
