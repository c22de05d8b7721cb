/** Name that is stored as this number. Throws if there is none. */
export function nameOf<N extends string>(numbers: Readonly<Record<N, number>>, number: number): N {
  for (const name in numbers) if (numbers[name] === number) return name
  throw new Error(`${number} is the number of none of ${Object.keys(numbers).join(', ')}`)
}
