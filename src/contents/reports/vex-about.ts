// Part of an image that a statement is about, if the statement names it.
import type { VexStatement } from './vex-statement.ts'

/**
 * `image` is true for the whole image, and `parts` has the named parts of it; false and empty if the statement is about other
 * images only.
 */
export type AboutImage = { image: boolean; parts: string[] }

/**
 * `digests` are those by which the image may be named: its own, and perhaps that of an index that lists it. A name without an
 * image counts as a part of this image. Parts of an image that is named without a digest count as parts of another.
 */
export function aboutImage(
  { products, within = [] }: Pick<VexStatement, 'products' | 'within'>,
  ...digests: readonly string[]
): AboutImage {
  const about: AboutImage = { image: products.length === 0, parts: [] }
  for (const [i, product] of products.entries()) {
    const whole = within[i] ?? ''
    if (whole !== '') {
      if (digests.includes(digestIn(whole))) about.parts.push(product)
    } else if (/^pkg:(?:oci|docker)\//.test(product) || digestIn(product) !== '') {
      if (digests.includes(digestIn(product))) about.image = true
    } else about.parts.push(product)
  }
  return about
}

/** Digest in a package URL or another reference; the colon may be escaped, as it is in package URLs. */
function digestIn(name: string): string {
  return /@(sha\d+:[0-9a-f]+)(?:[?#]|$)/.exec(name.replaceAll(/%3a/gi, ':'))?.[1] ?? ''
}
