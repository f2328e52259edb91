#include "json.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEEPEST 64

typedef struct {
    const char *at;
    int depth;
    bool failed;
} reader;

static void *made(size_t size) {
    void *memory = calloc(1, size);
    if (memory == NULL) abort();
    return memory;
}

static value *of_kind(enum kind kind) {
    value *fresh = made(sizeof *fresh);
    fresh->kind = kind;
    return fresh;
}

static char *kept(const char *text, size_t length) {
    char *copy = made(length + 1);
    memcpy(copy, text, length);
    return copy;
}

char *joined(const char *first, ...) {
    va_list more;
    size_t length = 0;
    va_start(more, first);
    for (const char *part = first; part != NULL; part = va_arg(more, const char *)) length += strlen(part);
    va_end(more);
    char *all = made(length + 1);
    va_start(more, first);
    for (const char *part = first; part != NULL; part = va_arg(more, const char *)) strcat(all, part);
    va_end(more);
    return all;
}

bool same_word(const char *one, const char *other) {
    while (*one != 0 && tolower((unsigned char)*one) == tolower((unsigned char)*other)) one++, other++;
    return *one == 0 && *other == 0;
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

static value *read_value(reader *from);

static void skip_blanks(reader *from) {
    while (*from->at != 0 && strchr(" \t\r\n", *from->at) != NULL) from->at++;
}

static bool took(reader *from, char wanted) {
    skip_blanks(from);
    if (*from->at != wanted) return false;
    from->at++;
    return true;
}

static void need(reader *from, char wanted) {
    if (!took(from, wanted)) from->failed = true;
}

static unsigned read_unit(reader *from) {
    unsigned unit = 0;
    for (int digit = 0; digit < 4; digit++) {
        if (!isxdigit((unsigned char)*from->at)) {
            from->failed = true;
            return 0;
        }
        char one[2] = {*from->at++, 0};
        unit = unit * 16 + (unsigned)strtoul(one, NULL, 16);
    }
    return unit;
}

static char *put_point(char *to, unsigned point) {
    if (point < 0x80) {
        *to++ = (char)point;
    } else if (point < 0x800) {
        *to++ = (char)(0xC0 | point >> 6);
        *to++ = (char)(0x80 | (point & 0x3F));
    } else if (point < 0x10000) {
        *to++ = (char)(0xE0 | point >> 12);
        *to++ = (char)(0x80 | (point >> 6 & 0x3F));
        *to++ = (char)(0x80 | (point & 0x3F));
    } else {
        *to++ = (char)(0xF0 | point >> 18);
        *to++ = (char)(0x80 | (point >> 12 & 0x3F));
        *to++ = (char)(0x80 | (point >> 6 & 0x3F));
        *to++ = (char)(0x80 | (point & 0x3F));
    }
    return to;
}

static unsigned read_escaped(reader *from) {
    unsigned point = read_unit(from);
    if (point >= 0xD800 && point < 0xDC00 && from->at[0] == '\\' && from->at[1] == 'u') {
        from->at += 2;
        point = 0x10000 + ((point - 0xD800) << 10) + (read_unit(from) - 0xDC00);
    }
    return point;
}

static char *read_text(reader *from) {
    need(from, '"');
    char *text = made(strlen(from->at) + 1), *to = text;
    while (!from->failed && *from->at != '"') {
        char one = *from->at++;
        if ((unsigned char)one < 0x20) from->failed = true; /* the end of the text, too */
        if (one != '\\') {
            *to++ = one;
            continue;
        }
        const char *plain = "\"\\/bfnrt", *meant = "\"\\/\b\f\n\r\t", *found = strchr(plain, *from->at);
        if (*from->at == 'u') {
            from->at++;
            to = put_point(to, read_escaped(from));
        } else if (*from->at != 0 && found != NULL) {
            *to++ = meant[found - plain];
            from->at++;
        } else {
            from->failed = true;
        }
    }
    if (!from->failed) from->at++;
    return text;
}

static value *read_literal(reader *from) {
    const char *start = from->at;
    while (isalnum((unsigned char)*from->at) || (*from->at != 0 && strchr("+-.", *from->at) != NULL)) from->at++;
    value *literal = of_kind(LITERAL);
    literal->text = kept(start, (size_t)(from->at - start));
    const char *word = literal->text;
    char *end;
    strtod(word, &end);
    bool number = (isdigit((unsigned char)*word) || *word == '-') && *end == 0;
    if (!number && strcmp(word, "true") != 0 && strcmp(word, "false") != 0 && strcmp(word, "null") != 0) from->failed = true;
    return literal;
}

static value *read_members(reader *from, enum kind kind, char closing) {
    value *whole = of_kind(kind);
    from->at++;
    if (took(from, closing)) return whole;
    do {
        char *name = NULL;
        if (kind == OBJECT) {
            name = read_text(from);
            need(from, ':');
        }
        value *member = read_value(from);
        if (from->failed) return whole;
        member->name = name;
        json_append(whole, member);
    } while (took(from, ','));
    need(from, closing);
    return whole;
}

static value *read_value(reader *from) {
    skip_blanks(from);
    if (++from->depth > DEEPEST) from->failed = true;
    if (from->failed) return of_kind(NOTHING);
    value *found;
    if (*from->at == '{') {
        found = read_members(from, OBJECT, '}');
    } else if (*from->at == '[') {
        found = read_members(from, LIST, ']');
    } else if (*from->at == '"') {
        found = json_of(read_text(from));
    } else {
        found = read_literal(from);
    }
    from->depth--;
    return found;
}

value *json_parse(const char *text) {
    reader from = {.at = text};
    value *found = read_value(&from);
    skip_blanks(&from);
    return from.failed || *from.at != 0 ? NULL : found;
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

static char *quoted(const char *text) {
    char *whole = made(strlen(text) * 6 + 3), *to = whole;
    *to++ = '"';
    for (; *text != 0; text++) {
        if (*text == '"' || *text == '\\') {
            *to++ = '\\';
            *to++ = *text;
        } else if ((unsigned char)*text < 0x20) {
            to += sprintf(to, "\\u%04x", (unsigned char)*text);
        } else {
            *to++ = *text;
        }
    }
    *to = '"';
    return whole;
}

char *json_text(const value *document) {
    if (document->kind == TEXT) return quoted(document->text);
    if (document->kind == LITERAL) return document->text;
    char *whole = document->kind == OBJECT ? "{" : "[";
    for (const value *member = document->first; member != NULL; member = member->next) {
        const char *before = member == document->first ? "" : ",";
        if (document->kind == OBJECT) {
            whole = joined(whole, before, quoted(member->name), ":", json_text(member), NULL);
        } else {
            whole = joined(whole, before, json_text(member), NULL);
        }
    }
    return joined(whole, document->kind == OBJECT ? "}" : "]", NULL);
}

/* --- trees -------------------------------------------------------------------------------------------------------- */

value *json_object(void) { return of_kind(OBJECT); }

value *json_list(void) { return of_kind(LIST); }

value *json_of(const char *text) {
    value *fresh = of_kind(TEXT);
    fresh->text = kept(text, strlen(text));
    return fresh;
}

value *json_literal(const char *text) {
    value *fresh = of_kind(LITERAL);
    fresh->text = kept(text, strlen(text));
    return fresh;
}

value *json_copy(const value *document) {
    value *copy = of_kind(document->kind);
    copy->text = document->text;
    copy->name = document->name;
    for (const value *member = document->first; member != NULL; member = member->next) json_append(copy, json_copy(member));
    return copy;
}

value *json_member(const value *object, const char *name) {
    if (object == NULL || object->kind != OBJECT) return NULL;
    for (value *member = object->first; member != NULL; member = member->next)
        if (same_word(member->name, name)) return member;
    return NULL;
}

const char *json_word(const value *object, const char *name) {
    const value *member = json_member(object, name);
    return member != NULL && member->kind == TEXT ? member->text : "";
}

void json_append(value *list, value *member) {
    value **end = &list->first;
    while (*end != NULL) end = &(*end)->next;
    member->next = NULL;
    *end = member;
}

void json_drop(value *list, const value *member) {
    for (value **at = &list->first; *at != NULL; at = &(*at)->next)
        if (*at == member) {
            *at = member->next;
            return;
        }
}

void json_remove(value *object, const char *name) {
    value *found = json_member(object, name);
    if (found != NULL) json_drop(object, found);
}

void json_set(value *object, const char *name, value *member) {
    json_remove(object, name);
    member->name = kept(name, strlen(name));
    json_append(object, member);
}
