/** What `/readyz` says of a check that has not ended yet. The check goes on: whoever asks again may be told its result. */
export const CHECK_PENDING = 'does not answer in time'
