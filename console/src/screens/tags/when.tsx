// Time of a tag update. For an update at an upstream, a range.
import type { Move } from '../../data/types.ts'
import { Time, timeText } from '../../ui/text.tsx'
import { tagWords } from '../../words/tags.ts'
import { words } from '../../words.ts'
import { isFromUpstream } from './moves.ts'

/** An update at an upstream happened between two checks of the upstream, so its time is a range. */
export function When({ move }: { move: Move }) {
  const { time, checkedBefore } = move
  if (!isFromUpstream(move)) return <Time at={time} />
  return checkedBefore ? (
    <>
      {words.between} <Time at={checkedBefore} /> {words.and} <Time at={time} />
    </>
  ) : (
    <>
      <Time at={time} /> {tagWords.firstCheck}
    </>
  )
}

/** Time of a tag update as plain text. */
export function whenText(move: Move): string {
  const { time, checkedBefore, actorName } = move
  if (!isFromUpstream(move)) return tagWords.updateBy(timeText(time), actorName || words.nameUnknown)
  return checkedBefore
    ? tagWords.updateBetween(timeText(checkedBefore), timeText(time))
    : tagWords.firstSeen(timeText(time))
}
