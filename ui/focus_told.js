// What a run of the script has named, for the keeper: now, or when it comes.
export default function tell({ data }) {
  window.losslabTold = data;
  window.losslabKeeper?.show(data);
}
