// Bodies for every entry point that takes JSON or a form.
const maxBodyBytes = 4 * 1024 * 1024
const maxFormBytes = 64 * 1024

/** The worst JSON: expensive to scan or to build for its size. */
export const jsonBodies: Record<string, () => string> = {
  members: () => {
    let text = '{'
    for (let at = 0; text.length < maxBodyBytes - 32; at++) text += `"${at.toString(36)}":0,`
    return `${text}"":0}`
  },
  'allowed members': () =>
    `{${Array.from({ length: 19_900 }, (_, at) => `"${at.toString(36).padStart(190, 'a')}":0`).join(',')}}`,
  'nested lists': () => `{"a":${'['.repeat(2_000_000)}${']'.repeat(2_000_000)}}`,
  'allowed nested lists': () => `{"a":[${`${'['.repeat(60)}${']'.repeat(60)},`.repeat(330)}0]}`,
  'nested objects': () => `${'{"a":'.repeat(690_000)}0${'}'.repeat(690_000)}`,
  numbers: () => `{"a":[${'0,'.repeat(2_090_000)}0]}`,
  'long numbers': () => `{"a":[${`${'9'.repeat(200)},`.repeat(19_900)}0]}`,
  'one long number': () => `{"a":${'9'.repeat(4_100_000)}}`,
  'empty objects': () => `{"a":[${'{},'.repeat(1_390_000)}0]}`,
  escapes: () => `{"a":"${'\\u0000'.repeat(690_000)}"}`,
  'letters of many bytes': () => `{"a":"${'é'.repeat(2_050_000)}"}`,
  'the same member': () => `{${'"a":0,'.repeat(690_000)}"a":0}`,
  blanks: () => `{${' '.repeat(4_100_000)}}`,
  quotes: () => `"${'\\"'.repeat(2_050_000)}`,
}

const names = (count: number): string[] => Array.from({ length: count }, (_, at) => at.toString(36))

/** The worst forms. */
export const formBodies: Record<string, () => string> = {
  'many members': () => names(30_000).join('&').slice(0, maxFormBytes),
  'a member many times': () => 'cap=a&'.repeat(10_900),
  'one long member': () => `code=${'a'.repeat(65_000)}`,
  'escaped members': () => `code=${'%41'.repeat(21_000)}`,
  equals: () => '='.repeat(65_000),
  ampersands: () => '&'.repeat(65_000),
  'plus signs': () => `code=${'+'.repeat(65_000)}`,
}
