// What is known of an image, less what somebody lives with there.
import type { Reader } from '#db/sql.ts'
import { type ImageAt, withAccepted } from '../risks/accepted.service.ts'
import type { ImageKnowledge } from './image-knowledge.service.ts'

/** The same where nothing was ever accepted of it. What holds for an image of several repos holds in all of them. */
export async function withAcceptedIn(
  reader: Reader,
  knowledge: ImageKnowledge,
  images: readonly ImageAt[],
): Promise<ImageKnowledge> {
  const found = await withAccepted(reader, knowledge.found, images, knowledge.distribution)
  return found.some(({ accepted }) => accepted.length > 0) ? { ...knowledge, found } : knowledge
}
