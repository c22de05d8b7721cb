// Patterns of tags in retention rules, tag rules and cooldown policies. `*` stands for any characters.
import { matchesGlob, readGlob } from '#lib/patterns/globs.ts'

export const tagPatterns = /^[a-zA-Z0-9_.*-]{1,128}$/
/** Most patterns of a rule. */
export const maxPatterns = 20

/** Tag patterns of a rule. A rule without `tags` covers all tags, except tags that match `exceptTags`. */
export type TagPatterns = { readonly tags: readonly string[]; readonly exceptTags: readonly string[] }

/** True if the rule covers the tag. */
export type IsAbout = (tag: string) => boolean

/** Compiles the patterns once, for many tags. */
export function aboutTags({ tags, exceptTags }: TagPatterns): IsAbout {
  const [named, excepted] = [anyOf(tags), anyOf(exceptTags)]
  return (tag) => (tags.length === 0 || named(tag)) && !excepted(tag)
}

/** Caches whether the rule covers a tag. */
export function cacheMatches(isAbout: IsAbout): IsAbout {
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
