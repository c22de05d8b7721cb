// Readability of a page: the Flesch-Kincaid grade of its sentences, without code, tables and headings.
import { sentencesOf } from './rules.ts'
import type { Text } from './texts.ts'

/** Highest grade of the README and of each guide. */
export const maxGrade = 9

/**
 * Flesch-Kincaid grade: 0.39 × words per sentence + 11.8 × syllables per word − 15.59. Ignores table cells, inline code and list
 * items that are no sentences.
 */
export function gradeOf(texts: readonly Pick<Text, 'text' | 'isCell'>[]): number {
  const prose = texts.filter(({ text, isCell }) => !isCell && /[.:!?][)"”]*$/.test(text))
  const sentences = prose
    .flatMap(({ text }) => sentencesOf(text))
    .map((sentence) => lettersOf(sentence.replace(/\bCODE\b/g, '')))
    .filter((words) => words.length > 0)
  const words = sentences.flat()
  if (words.length === 0) return 0
  const syllables = words.reduce((sum, word) => sum + syllablesOf(word), 0)
  return 0.39 * (words.length / sentences.length) + 11.8 * (syllables / words.length) - 15.59
}

/** Words that consist of letters. Parts of a compound are separate words, and "user's" is one. */
const lettersOf = (sentence: string): string[] => sentence.match(/\p{L}+(?:['’]\p{L}+)*/gu) ?? []

/** Spellings that have one syllable less than groups of vowels, and one more. Based on the Perl module `Lingua::EN::Syllable`. */
const fewer = [/cial/, /tia/, /cius/, /cious/, /giu/, /ion/, /iou/, /sia$/, /.ely$/]
const more = [
  /ia/,
  /riet/,
  /dien/,
  /iu/,
  /io/,
  /ii/,
  /creat|area|idea/,
  /[aeiou]{3}/,
  /^mc/,
  /ism$/,
  /[^l]lien/,
  /^coa[dglx]./,
  /[^gq]ua[^auieo]/,
  /dn['’]?t$/,
  /sn['’]?t$/,
]

/** Number of syllables of an English word, by its spelling. An abbreviation in capital letters has one for each letter. */
export function syllablesOf(word: string): number {
  if (/^[A-Z]{2,}s?$/.test(word)) return word.replace(/s$/, '').length
  const letters = word
    .toLowerCase()
    .replace(/['’]s?$/, '')
    // The "e" of these endings is silent, as in "pushed", "rules" and "store", but not in "tables".
    .replace(/(?<=[^aeiouytdl]|[aeiouyl]l)ed$/, 'd')
    .replace(/(?<=[aeiouylr]l|[^aeiouysxzcghl]|[^cs]h)es$/, 's')
    .replace(/(?<=[^aeiouyl]|[aeiouylr]l|[aeouy])e$/, '')
  const groups = letters.match(/[aeiouy]+/g)?.length ?? 0
  const matches = (patterns: readonly RegExp[]) => patterns.filter((pattern) => pattern.test(letters)).length
  return Math.max(1, groups - matches(fewer) + matches(more))
}
