// Coverage gaps of an image with their reasons.
import type { Gap } from '../../data/types.ts'
import { Note } from '../../ui/states.tsx'
import { digestWords } from '../../words/digests.ts'

export function Gaps({ gaps }: { gaps: readonly Gap[] }) {
  if (gaps.length === 0) return null
  return (
    <Note kind="warn">
      <p>{digestWords.incomplete}</p>
      <ul>
        {gaps.map(({ reason, subject, message }) => (
          <li key={`${reason} ${subject} ${message}`}>
            <bdi>{[message || reason, subject].filter((one) => one !== '').join(': ')}</bdi>
          </li>
        ))}
      </ul>
    </Note>
  )
}
