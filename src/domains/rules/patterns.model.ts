// Patterns of tags, as the rules of what is kept and of what is pulled have them: `*` stands for any characters.
import { matchesGlob, readGlob } from '#lib/patterns/globs.ts'

export const tagPatterns = /^[a-zA-Z0-9_.*-]{1,128}$/
/** How many a rule may name. */
export const maxPatterns = 20

/** Which tags something is about: none named stand for all, but for the exceptions. */
export type TagPatterns = { readonly tags: readonly string[]; readonly exceptTags: readonly string[] }

/** Whether it is about a tag. */
export type IsAbout = (tag: string) => boolean

/** The patterns as a question that can be asked of many tags: they are read once. */
export function aboutTags({ tags, exceptTags }: TagPatterns): IsAbout {
  const [named, excepted] = [anyOf(tags), anyOf(exceptTags)]
  return (tag) => (tags.length === 0 || named(tag)) && !excepted(tag)
}

/** The same question, of which each tag is asked once. */
export function askedOnce(isAbout: IsAbout): IsAbout {
  const answers = new Map<string, boolean>()
  return (tag) => {
    const known = answers.get(tag)
    if (known !== undefined) return known
    const answer = isAbout(tag)
    answers.set(tag, answer)
    return answer
  }
}

function anyOf(patterns: readonly string[]): IsAbout {
  const names = new Set(patterns.filter((pattern) => !pattern.includes('*')))
  const others = patterns.filter((pattern) => pattern.includes('*')).map(readGlob)
  return (tag) => names.has(tag) || others.some((glob) => matchesGlob(glob, tag))
}
