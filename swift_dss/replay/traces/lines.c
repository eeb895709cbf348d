// SPDX-License-Identifier: Apache-2.0
/*
 * Lines of a native trace to columns: swift_dss.replay.traces.lines.
 *
 * Only for lines that are as they mostly are. At any other it stops, and
 * native.py reads that line, or says why it cannot be read.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <string.h>

#define FIELDS_MAX 8
#define CLASS_MAX 31
#define DIGITS_MAX 15
#define MS_MAX 48

enum column { AT_MS, VERBS, OBJECTS, STARTS, LENGTHS, SIZES, CLASS_IDS,
	      ACCOUNTS, CLIENTS, COLUMNS };

static const Py_ssize_t widths[COLUMNS] = { 8, 1, 8, 8, 8, 8, 1, 8, 8 };

struct field {
	const char *text;
	size_t length;
};

struct row {
	double at_ms;
	uint64_t object, account;
	int64_t start, length, size, client;
	uint8_t verb, class_id;
};

/* FNV-1a, and splitmix64's last steps: all bits depend on all bytes. */
static uint64_t hash_bytes(const char *text, size_t length)
{
	uint64_t hash = 0xCBF29CE484222325ull;
	size_t i;

	for (i = 0; i < length; i++)
		hash = (hash ^ (uint8_t)text[i]) * 0x100000001B3ull;
	hash = (hash ^ (hash >> 30)) * 0xBF58476D1CE4E5B9ull;
	hash = (hash ^ (hash >> 27)) * 0x94D049BB133111EBull;
	return hash ^ (hash >> 31);
}

static int whole(const struct field *field, int64_t most, int64_t *number)
{
	size_t i;

	*number = 0;
	if (!field->length || field->length > DIGITS_MAX)
		return -1;
	for (i = 0; i < field->length; i++) {
		unsigned int digit = (unsigned int)(field->text[i] - '0');

		if (digit > 9)
			return -1;
		*number = 10 * *number + digit;
	}
	return *number <= most ? 0 : -1;
}

static int at_ms(const struct field *field, double *number)
{
	char text[MS_MAX], *end;
	size_t i;

	if (field->length >= MS_MAX)
		return -1;
	for (i = 0; i < field->length; i++)
		if (!strchr("0123456789.", field->text[i]))
			return -1;
	memcpy(text, field->text, field->length);
	text[field->length] = 0;
	*number = PyOS_string_to_double(text, &end, NULL);
	if (PyErr_Occurred()) {
		PyErr_Clear();
		return -1;
	}
	return end == text + field->length && *number < 1e15 ? 0 : -1;
}

static int verb_of(const struct field *field, uint8_t *verb)
{
	static const char *const names[] = { "GET", "PUT", "DELETE" };
	uint8_t i;

	for (i = 0; i < 3; i++)
		if (field->length == strlen(names[i]) &&
		    !memcmp(field->text, names[i], field->length)) {
			*verb = i;
			return 0;
		}
	return -1;
}

/* The number of fields of a line; -1: it has other bytes than ASCII, which
 * have to be looked at. */
static int split(const char *line, const char *end, struct field *fields)
{
	int count = 0;

	while (line < end) {
		const char *begin;

		while (line < end && *line == ' ')
			line++;
		begin = line;
		while (line < end && *line > ' ' && *line < 127)
			line++;
		if (line < end && *line != ' ')
			return -1;
		if (line == begin)
			break;
		if (count == FIELDS_MAX)
			return -1;
		fields[count++] = (struct field){ begin,
						  (size_t)(line - begin) };
	}
	return count;
}

static int take_row(const char *line, const char *end, int has_clients,
		    int64_t most, struct row *row)
{
	struct field fields[FIELDS_MAX];
	int count = split(line, end, fields);
	int64_t last = 0, class_id = 0;
	const char *slash;

	row->client = 0;
	if (count < 4 || fields[0].text[0] == '#' ||
	    (has_clients && count != FIELDS_MAX))
		return -1;
	if (has_clients && whole(&fields[--count], most, &row->client))
		return -1;
	if (count > 7 || at_ms(&fields[0], &row->at_ms) ||
	    verb_of(&fields[1], &row->verb) ||
	    whole(&fields[3], most, &row->size) ||
	    ((count == 5 || count == 7) &&
	     whole(&fields[count - 1], CLASS_MAX, &class_id)))
		return -1;
	row->start = 0;
	row->length = row->size ? row->size : 1;
	if (count > 5) {
		if (whole(&fields[4], most, &row->start) ||
		    whole(&fields[5], most, &last) || last < row->start ||
		    last >= row->size)
			return -1;
		row->length = last - row->start + 1;
	}
	if (!row->size)
		row->size = 1;
	row->class_id = (uint8_t)class_id;
	row->object = hash_bytes(fields[2].text, fields[2].length);
	slash = memchr(fields[2].text, '/', fields[2].length);
	row->account = hash_bytes(fields[2].text, slash ? (size_t)(
				  slash - fields[2].text) : 0);
	return 0;
}

static void put_row(Py_buffer *columns, Py_ssize_t at, const struct row *row)
{
	((double *)columns[AT_MS].buf)[at] = row->at_ms;
	((uint8_t *)columns[VERBS].buf)[at] = row->verb;
	((uint64_t *)columns[OBJECTS].buf)[at] = row->object;
	((int64_t *)columns[STARTS].buf)[at] = row->start;
	((int64_t *)columns[LENGTHS].buf)[at] = row->length;
	((int64_t *)columns[SIZES].buf)[at] = row->size;
	((uint8_t *)columns[CLASS_IDS].buf)[at] = row->class_id;
	((uint64_t *)columns[ACCOUNTS].buf)[at] = row->account;
	((int64_t *)columns[CLIENTS].buf)[at] = row->client;
}

PyDoc_STRVAR(read_doc,
"read_lines(text, begin, has_clients, most, row, *columns)\n--\n\n"
"Read lines; see lines.pyi.");

static PyObject *read_lines(PyObject *module, PyObject *args)
{
	Py_buffer text, columns[COLUMNS];
	Py_ssize_t begin, at, rows;
	long long most;
	int has_clients, i, is_bad;

	(void)module;
	if (!PyArg_ParseTuple(args, "y*npLnw*w*w*w*w*w*w*w*w*", &text, &begin,
			      &has_clients, &most, &at, &columns[AT_MS],
			      &columns[VERBS], &columns[OBJECTS],
			      &columns[STARTS], &columns[LENGTHS],
			      &columns[SIZES], &columns[CLASS_IDS],
			      &columns[ACCOUNTS], &columns[CLIENTS]))
		return NULL;
	rows = columns[VERBS].len;
	is_bad = begin < 0 || begin > text.len || at < 0;
	for (i = 0; i < COLUMNS; i++)
		is_bad |= columns[i].len != rows * widths[i];
	while (!is_bad && at < rows) {
		const char *line = (const char *)text.buf + begin;
		const char *end = memchr(line, '\n',
					 (size_t)(text.len - begin));
		struct row row;

		if (!end || take_row(line, end, has_clients, most, &row))
			break;
		put_row(columns, at++, &row);
		begin += end - line + 1;
	}
	for (i = 0; i < COLUMNS; i++)
		PyBuffer_Release(&columns[i]);
	PyBuffer_Release(&text);
	if (is_bad)
		return PyErr_Format(PyExc_ValueError, "columns differ in "
				    "length, or a place is out of bounds");
	return Py_BuildValue("nn", begin, at);
}

PyDoc_STRVAR(hashed_doc,
"hashed(name)\n--\n\n"
"The number that read_lines() gives an object of that name.");

static PyObject *hashed(PyObject *module, PyObject *name)
{
	(void)module;
	if (!PyBytes_Check(name))
		return PyErr_Format(PyExc_TypeError, "not bytes");
	return PyLong_FromUnsignedLongLong(hash_bytes(
		PyBytes_AS_STRING(name), (size_t)PyBytes_GET_SIZE(name)));
}

static PyMethodDef methods[] = {
	{ "read_lines", read_lines, METH_VARARGS, read_doc },
	{ "hashed", hashed, METH_O, hashed_doc },
	{ NULL, NULL, 0, NULL },
};

static struct PyModuleDef module = {
	PyModuleDef_HEAD_INIT,
	.m_name = "swift_dss.replay.traces.lines",
	.m_doc = "Lines of a native trace to columns.",
	.m_size = -1,
	.m_methods = methods,
};

PyMODINIT_FUNC PyInit_lines(void)
{
	return PyModule_Create(&module);
}
