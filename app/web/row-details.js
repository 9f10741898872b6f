// The details of single verdicts by the text, which the page asks for when one is opened.

import { judgeInDetail, ServiceError } from "./api.js";

export class RowDetails {
  constructor() {
    this._known = new WeakMap();
    this._asking = null;
  }

  /**
   * Explain `row`, what `file` says, {text, truncated}: call `explain(row, trouble)` with what is known at once, and again with the details
   * once they have come, or with the `trouble` that there was.
   */
  async detail(row, file, explain) {
    this.close();
    const known = hasDetails(row) ? row : this._known.get(row);
    if (known !== undefined) return explain(known, null);
    const mine = (this._asking = new AbortController());
    explain(row, null);
    try {
      const detail = { ...row, ...(await judgeInDetail(row, file, mine.signal)) };
      this._known.set(row, detail);
      if (!mine.signal.aborted) explain(detail, null);
    } catch (error) {
      if (error instanceof ServiceError) explain(row, error.message);
      else if (error.name !== "AbortError") throw error;
    }
    return undefined;
  }

  /** Ask nothing more. */
  close() {
    this._asking?.abort();
  }
}

/** Whether the row is explained in detail, or has no answer that could be. */
function hasDetails({ explanation, verdict }) {
  return explanation.path !== undefined || verdict === "none";
}
